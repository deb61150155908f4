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
    var mean = 0.0;
    for (var i = 0u; i < dims.N; i++) {
        mean += X[row + i];
    }
    mean /= f32(dims.N);
    var spread = 0.0;
    for (var i = 0u; i < dims.N; i++) {
        spread += X[row + i] * X[row + i];
    }
    let scale = inverseSqrt(max(spread / f32(dims.N) - mean * mean, 0.0) + 1e-5);
    for (var i = 0u; i < dims.N; i++) {
        Y[row + i] = (X[row + i] - mean) * scale;
    }
}
