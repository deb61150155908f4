/*---
launch:
  - {entry: main, grid: ["min(M, 65535)", "ceil_div(M, 65535)"]}
---*/
struct Dims { M: u32, N: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read> gamma: array<f32>;
@group(0) @binding(2) var<storage, read_write> Y: array<f32>;
@group(0) @binding(3) var<uniform> dims: Dims;

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(num_workgroups) blocks: vec3u) {
    let row = block.y * blocks.x + block.x;
    if (row >= dims.M) {
        return;
    }
    let first = row * dims.N;
    var sum = 0.0;
    for (var i = 0u; i < dims.N; i++) {
        sum += X[first + i] * X[first + i];
    }
    let scale = 1.0 / sqrt(sum / f32(dims.N) + 1e-6);
    for (var i = 0u; i < dims.N; i++) {
        Y[first + i] = X[first + i] * scale * gamma[i];
    }
}
