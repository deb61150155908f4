/*---
launch:
  - {entry: main, grid: ["min(M, 65535)", "ceil_div(M, 65535)"]}
---*/
struct Dims { M: u32, N: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> Y: array<f32>;
@group(0) @binding(2) var<uniform> dims: Dims;

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(num_workgroups) blocks: vec3u) {
    let row = block.y * blocks.x + block.x;
    if (row >= dims.M) {
        return;
    }
    let first = row * dims.N;
    var most = X[first];
    for (var i = 1u; i < dims.N; i++) {
        most = max(most, X[first + i]);
    }
    var sum = 0.0;
    for (var i = 0u; i < dims.N; i++) {
        sum += exp(X[first + i] - most);
    }
    for (var i = 0u; i < dims.N; i++) {
        Y[first + i] = exp(X[first + i] - most) / sum;
    }
}
