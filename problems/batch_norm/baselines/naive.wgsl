/*---
launch:
  - {entry: main, grid: ["ceil_div(H * W, 64)", C, N]}
---*/
struct Dims { N: u32, C: u32, H: u32, W: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read> mean: array<f32>;
@group(0) @binding(2) var<storage, read> variance: array<f32>;
@group(0) @binding(3) var<storage, read> gamma: array<f32>;
@group(0) @binding(4) var<storage, read> beta: array<f32>;
@group(0) @binding(5) var<storage, read_write> Y: array<f32>;
@group(0) @binding(6) var<uniform> dims: Dims;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let c = id.y;
    if (id.x < dims.H * dims.W) {
        let i = (id.z * dims.C + c) * dims.H * dims.W + id.x;
        Y[i] = (X[i] - mean[c]) / sqrt(variance[c] + 1e-5) * gamma[c] + beta[c];
    }
}
