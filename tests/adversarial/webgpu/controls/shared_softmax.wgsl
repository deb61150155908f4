/*---
launch:
  - {entry: main, grid: [M]}
---*/
struct Dims { M: u32, N: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> Y: array<f32>;
@group(0) @binding(2) var<uniform> dims: Dims;
var<workgroup> parts: array<f32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(local_invocation_index) at: u32) {
    let row = block.x * dims.N;
    var most = X[row];
    for (var i = at; i < dims.N; i += 64u) {
        most = max(most, X[row + i]);
    }
    parts[at] = most;
    workgroupBarrier();
    for (var step = 32u; step > 0u; step /= 2u) {
        if (at < step) {
            parts[at] = max(parts[at], parts[at + step]);
        }
        workgroupBarrier();
    }
    most = parts[0];
    workgroupBarrier();
    var sum = 0.0;
    for (var i = at; i < dims.N; i += 64u) {
        sum += exp(X[row + i] - most);
    }
    parts[at] = sum;
    workgroupBarrier();
    for (var step = 32u; step > 0u; step /= 2u) {
        if (at < step) {
            parts[at] += parts[at + step];
        }
        workgroupBarrier();
    }
    sum = parts[0];
    for (var i = at; i < dims.N; i += 64u) {
        Y[row + i] = exp(X[row + i] - most) / sum;
    }
}
