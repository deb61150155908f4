/*---
launch:
  - {entry: main, grid: ["ceil_div(N, 8)", "ceil_div(M, 8)"]}
---*/
struct Dims { M: u32, N: u32, K: u32 }
@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read_write> C: array<f32>;
@group(0) @binding(3) var<uniform> dims: Dims;
var<workgroup> tile_a: array<array<f32, 8>, 8>;
var<workgroup> tile_b: array<array<f32, 8>, 8>;

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) at: vec3u) {
    var sum = 0.0;
    for (var start = 0u; start < dims.K; start += 8u) {
        var a = 0.0;
        var b = 0.0;
        if (id.y < dims.M && start + at.x < dims.K) {
            a = A[id.y * dims.K + start + at.x];
        }
        if (id.x < dims.N && start + at.y < dims.K) {
            b = B[(start + at.y) * dims.N + id.x];
        }
        tile_a[at.y][at.x] = a;
        tile_b[at.y][at.x] = b;
        workgroupBarrier();
        for (var k = 0u; k < 8u; k++) {
            sum += tile_a[at.y][k] * tile_b[k][at.x];
        }
        workgroupBarrier();
    }
    if (id.x < dims.N && id.y < dims.M) {
        C[id.y * dims.N + id.x] = sum;
    }
}
