/*---
tune: {WIDTH: [64, 128, 256], EACH: [1, 2, 4, 8]}
launch:
  - {entry: main, grid: ["ceil_div(OH * OW, WIDTH * EACH)", C, N]}
---*/
struct Dims { N: u32, C: u32, H: u32, W: u32, S: u32, OH: u32, OW: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> Y: array<f32>;
@group(0) @binding(2) var<uniform> dims: Dims;
override WIDTH: u32;
override EACH: u32;

fn value(plane: u32, y: u32, x: u32) -> f32 {
    return X[(plane * dims.H + y / dims.S) * dims.W + x / dims.S];
}

@compute @workgroup_size(WIDTH)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(local_invocation_index) at: u32) {
    let plane = block.z * dims.C + block.y;
    for (var i = 0u; i < EACH; i++) {
        let place = (block.x * EACH + i) * WIDTH + at;
        if (place < dims.OH * dims.OW) {
            Y[plane * dims.OH * dims.OW + place] = value(plane, place / dims.OW, place % dims.OW);
        }
    }
}
