/*---
tune: {WIDTH: [64, 128, 256], EACH: [4, 1, 2, 8, 16]}
launch:
  - {entry: main, grid: ["ceil_div(H * W, WIDTH * EACH)", C, N]}
---*/
struct Dims { N: u32, C: u32, H: u32, W: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read> mean: array<f32>;
@group(0) @binding(2) var<storage, read> variance: array<f32>;
@group(0) @binding(3) var<storage, read> gamma: array<f32>;
@group(0) @binding(4) var<storage, read> beta: array<f32>;
@group(0) @binding(5) var<storage, read_write> Y: array<f32>;
@group(0) @binding(6) var<uniform> dims: Dims;
override WIDTH: u32;
override EACH: u32;

@compute @workgroup_size(WIDTH)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(local_invocation_index) at: u32) {
    let c = block.y;
    let count = dims.H * dims.W;
    let first = (block.z * dims.C + c) * count;
    let factor = gamma[c] / sqrt(variance[c] + 1e-5);
    for (var i = 0u; i < EACH; i++) {
        let place = (block.x * EACH + i) * WIDTH + at;
        if (place < count) {
            Y[first + place] = (X[first + place] - mean[c]) * factor + beta[c];
        }
    }
}
