/*---
launch:
  - {entry: main, grid: ["ceil_div(N, 32)", "ceil_div(M, 8)"]}
---*/
struct Dims { M: u32, N: u32, K: u32 }
@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read_write> C: array<f32>;
@group(0) @binding(3) var<uniform> dims: Dims;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.y >= dims.M || 4u * id.x >= dims.N) {
        return;
    }
    var sum = vec4f(0.0);
    let left = 4u * id.x;
    for (var k = 0u; k < dims.K; k++) {
        let row = k * dims.N;
        let last = row + dims.N - 1u;
        sum += A[id.y * dims.K + k] * vec4f(B[row + left], B[min(row + left + 1u, last)],
                                            B[min(row + left + 2u, last)], B[min(row + left + 3u, last)]);
    }
    for (var i = 0u; i < min(4u, dims.N - left); i++) {
        C[id.y * dims.N + left + i] = sum[i];
    }
}
