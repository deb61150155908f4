/*---
launch:
  - {entry: main, grid: ["ceil_div(OH * OW, 64)", C, N]}
---*/
struct Dims { N: u32, C: u32, H: u32, W: u32, S: u32, OH: u32, OW: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> Y: array<f32>;
@group(0) @binding(2) var<uniform> dims: Dims;

fn value(plane: u32, y: u32, x: u32) -> f32 {
    // Twice S times the place, in whole numbers: nothing is rounded.
    let down = max(2u * y + 1u, dims.S) - dims.S;
    let right = max(2u * x + 1u, dims.S) - dims.S;
    let y0 = down / (2u * dims.S);
    let x0 = right / (2u * dims.S);
    let y1 = min(y0 + 1u, dims.H - 1u);
    let x1 = min(x0 + 1u, dims.W - 1u);
    let v = f32(down % (2u * dims.S)) / f32(2u * dims.S);
    let u = f32(right % (2u * dims.S)) / f32(2u * dims.S);
    let first = plane * dims.H * dims.W;
    let above = X[first + y0 * dims.W + x0] * (1.0 - u) + X[first + y0 * dims.W + x1] * u;
    let below = X[first + y1 * dims.W + x0] * (1.0 - u) + X[first + y1 * dims.W + x1] * u;
    return above * (1.0 - v) + below * v;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < dims.OH * dims.OW) {
        let plane = id.z * dims.C + id.y;
        Y[plane * dims.OH * dims.OW + id.x] = value(plane, id.x / dims.OW, id.x % dims.OW);
    }
}
