/*---
launch:
  - {entry: main, grid: ["ceil_div(OH * OW, 64)", C, N]}
---*/
struct Dims { N: u32, C: u32, H: u32, W: u32, S: u32, OH: u32, OW: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> Y: array<f32>;
@group(0) @binding(2) var<uniform> dims: Dims;

fn value(plane: u32, y: u32, x: u32) -> f32 {
    return X[(plane * dims.H + y / dims.S) * dims.W + x / dims.S];
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < dims.OH * dims.OW) {
        let plane = id.z * dims.C + id.y;
        Y[plane * dims.OH * dims.OW + id.x] = value(plane, id.x / dims.OW, id.x % dims.OW);
    }
}
