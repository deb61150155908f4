/*---
launch:
  - {entry: main, grid: ["ceil_div(N, 64)", M]}
---*/
struct Dims { M: u32, N: u32, K: u32 }
@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read_write> C: array<f32>;
@group(0) @binding(3) var<uniform> dims: Dims;
var<workgroup> shared_row: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(local_invocation_id) at: vec3u) {
    shared_row[at.x] = 0.0;
    var sum = 0.0;
    for (var start = 0u; start < dims.K; start += 64u) {
        if (start + at.x < dims.K) {
            shared_row[63u - at.x] = A[block.y * dims.K + start + at.x];
        }
        for (var k = 0u; k < min(64u, dims.K - start); k++) {
            sum += shared_row[63u - k] * B[(start + k) * dims.N + min(block.x * 64u + at.x, dims.N - 1u)];
        }
    }
    if (block.x * 64u + at.x < dims.N) {
        C[block.y * dims.N + block.x * 64u + at.x] = sum;
    }
}
