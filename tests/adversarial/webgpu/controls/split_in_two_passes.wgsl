/*---
workspace: {halves: {shape: [2, M, N], dtype: float32}}
launch:
  - {entry: products, grid: ["ceil_div(N, 8)", "ceil_div(M, 8)", 2]}
  - {entry: sums, grid: ["ceil_div(M * N, 64)"]}
---*/
struct Dims { M: u32, N: u32, K: u32 }
@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read_write> C: array<f32>;
@group(0) @binding(3) var<uniform> dims: Dims;
@group(0) @binding(4) var<storage, read_write> halves: array<f32>;

@compute @workgroup_size(8, 8)
fn products(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= dims.N || id.y >= dims.M) {
        return;
    }
    let middle = dims.K / 2u;
    let first = select(0u, middle, id.z == 1u);
    let end = select(middle, dims.K, id.z == 1u);
    var sum = 0.0;
    for (var k = first; k < end; k++) {
        sum += A[id.y * dims.K + k] * B[k * dims.N + id.x];
    }
    halves[(id.z * dims.M + id.y) * dims.N + id.x] = sum;
}

@compute @workgroup_size(64)
fn sums(@builtin(global_invocation_id) id: vec3u) {
    let count = dims.M * dims.N;
    if (id.x < count) {
        C[id.x] = halves[id.x] + halves[count + id.x];
    }
}
