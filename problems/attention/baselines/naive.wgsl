/*---
launch:
  - {entry: main, grid: ["ceil_div(L, 64)", H]}
---*/
struct Dims { H: u32, L: u32, D: u32 }
@group(0) @binding(0) var<storage, read> Q: array<f32>;
@group(0) @binding(1) var<storage, read> K: array<f32>;
@group(0) @binding(2) var<storage, read> V: array<f32>;
@group(0) @binding(3) var<storage, read_write> O: array<f32>;
@group(0) @binding(4) var<uniform> dims: Dims;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let head = id.y * dims.L * dims.D;
    if (id.x >= dims.L) {
        return;
    }
    let query = head + id.x * dims.D;
    let scale = inverseSqrt(f32(dims.D));
    var most = -3.0e38;
    var sum = 0.0;
    for (var d = 0u; d < dims.D; d++) {
        O[query + d] = 0.0;
    }
    for (var j = 0u; j < dims.L; j++) {
        var score = 0.0;
        for (var d = 0u; d < dims.D; d++) {
            score += Q[query + d] * K[head + j * dims.D + d];
        }
        score *= scale;
        let higher = max(most, score);
        let kept = exp(most - higher);
        let weight = exp(score - higher);
        sum = sum * kept + weight;
        most = higher;
        for (var d = 0u; d < dims.D; d++) {
            O[query + d] = O[query + d] * kept + weight * V[head + j * dims.D + d];
        }
    }
    for (var d = 0u; d < dims.D; d++) {
        O[query + d] /= sum;
    }
}
