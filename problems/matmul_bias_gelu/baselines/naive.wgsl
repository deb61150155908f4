/*---
launch:
  - {entry: main, grid: ["ceil_div(N, 8)", "ceil_div(M, 8)"]}
---*/
struct Dims { M: u32, N: u32, K: u32 }
@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> C: array<f32>;
@group(0) @binding(4) var<uniform> dims: Dims;

// x / 2 * erfc(-x / sqrt(2)); erfc(z) = exp(-z * z) * t * p(t), t = 1 / (1 + z / 2).
fn gelu(x: f32) -> f32 {
    let z = abs(x) * 0.70710678;
    let t = 1.0 / (1.0 + 0.5 * z);
    var p = -0.059384305 * t + 0.286114424;
    p = p * t - 0.490388542;
    p = p * t + 0.281714976;
    p = p * t - 0.0291372798;
    p = p * t + 0.203748301;
    p = p * t + 0.242836058;
    p = p * t + 0.282411993;
    p = p * t + 0.282084346;
    let tail = 0.5 * x * exp(-0.5 * x * x) * t * p;
    return select(x - tail, tail, x < 0.0);
}

@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if (id.x >= dims.N || id.y >= dims.M) {
        return;
    }
    var sum = 0.0;
    for (var k = 0u; k < dims.K; k++) {
        sum += A[id.y * dims.K + k] * B[k * dims.N + id.x];
    }
    C[id.y * dims.N + id.x] = gelu(sum + bias[id.x]);
}
