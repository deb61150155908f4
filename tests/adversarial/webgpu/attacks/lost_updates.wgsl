/*---
launch:
  - {entry: main, grid: ["ceil_div(N, 64)", M]}
---*/
struct Dims { M: u32, N: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> S: array<f32>;
@group(0) @binding(2) var<storage, read_write> T: array<f32>;
@group(0) @binding(3) var<uniform> dims: Dims;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(global_invocation_id) id: vec3u) {
    if (id.x < dims.N) {
        S[block.y] += X[block.y * dims.N + id.x];
        T[block.y] = max(T[block.y], X[block.y * dims.N + id.x]);
    }
}
