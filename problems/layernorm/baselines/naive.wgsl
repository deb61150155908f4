/*---
launch:
  - {entry: main, grid: ["min(M, 65535)", "ceil_div(M, 65535)"]}
---*/
struct Dims { M: u32, N: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read> gamma: array<f32>;
@group(0) @binding(2) var<storage, read> beta: array<f32>;
@group(0) @binding(3) var<storage, read_write> Y: array<f32>;
@group(0) @binding(4) var<uniform> dims: Dims;

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(num_workgroups) blocks: vec3u) {
    let row = block.y * blocks.x + block.x;
    if (row >= dims.M) {
        return;
    }
    let first = row * dims.N;
    var mean = 0.0;
    for (var i = 0u; i < dims.N; i++) {
        mean += X[first + i];
    }
    mean /= f32(dims.N);
    var spread = 0.0;
    for (var i = 0u; i < dims.N; i++) {
        spread += (X[first + i] - mean) * (X[first + i] - mean);
    }
    let scale = 1.0 / sqrt(spread / f32(dims.N) + 1e-5);
    for (var i = 0u; i < dims.N; i++) {
        Y[first + i] = (X[first + i] - mean) * scale * gamma[i] + beta[i];
    }
}
