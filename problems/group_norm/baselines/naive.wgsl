/*---
launch:
  - {entry: main, grid: [G, N]}
---*/
struct Dims { N: u32, C: u32, H: u32, W: u32, G: u32, CG: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read> gamma: array<f32>;
@group(0) @binding(2) var<storage, read> beta: array<f32>;
@group(0) @binding(3) var<storage, read_write> Y: array<f32>;
@group(0) @binding(4) var<uniform> dims: Dims;

var<workgroup> parts: array<f32, 64u>;

fn all(mine: f32, at: u32) -> f32 {
    workgroupBarrier();
    parts[at] = mine;
    workgroupBarrier();
    for (var step = 64u / 2u; step > 0u; step /= 2u) {
        if (at < step) {
            parts[at] = parts[at] + parts[at + step];
        }
        workgroupBarrier();
    }
    return parts[0];
}

/* A workgroup a group. */
@compute @workgroup_size(64u)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(local_invocation_index) at: u32) {
    let plane = dims.H * dims.W;
    let count = dims.CG * plane;
    let first = (block.y * dims.G + block.x) * count;
    var sum = 0.0;
    for (var i = at; i < count; i += 64u) {
        sum += X[first + i];
    }
    let mean = all(sum, at) / f32(count);
    var spread = 0.0;
    for (var i = at; i < count; i += 64u) {
        spread += (X[first + i] - mean) * (X[first + i] - mean);
    }
    let scale = 1.0 / sqrt(all(spread, at) / f32(count) + 1e-5);
    for (var i = at; i < count; i += 64u) {
        let c = block.x * dims.CG + i / plane;
        Y[first + i] = (X[first + i] - mean) * scale * gamma[c] + beta[c];
    }
}
