/*---
launch:
  - {entry: main, grid: ["ceil_div(OH * OW, 64)", C, N]}
---*/
struct Dims { N: u32, C: u32, H: u32, W: u32, K: u32, PAD: u32, STRIDE: u32, OH: u32, OW: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> Y: array<f32>;
@group(0) @binding(2) var<uniform> dims: Dims;

fn value(plane: u32, y: u32, x: u32) -> f32 {
    let top = i32(y * dims.STRIDE) - i32(dims.PAD);
    let left = i32(x * dims.STRIDE) - i32(dims.PAD);
    let last_h = min(top + i32(dims.K), i32(dims.H));
    let last_w = min(left + i32(dims.K), i32(dims.W));
    var most = -3.40282347e+38;
    for (var h = max(top, 0); h < last_h; h++) {
        for (var w = max(left, 0); w < last_w; w++) {
            let seen = X[(plane * dims.H + u32(h)) * dims.W + u32(w)];
            most = max(most, seen);
        }
    }
    return most;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < dims.OH * dims.OW) {
        let plane = id.z * dims.C + id.y;
        Y[plane * dims.OH * dims.OW + id.x] = value(plane, id.x / dims.OW, id.x % dims.OW);
    }
}
