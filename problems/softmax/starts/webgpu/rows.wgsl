/*---
tune: {WIDTH: [128, 64, 256, 32]}
launch:
  - {entry: main, grid: ["min(M, 65535)", "ceil_div(M, 65535)"]}
---*/
struct Dims { M: u32, N: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> Y: array<f32>;
@group(0) @binding(2) var<uniform> dims: Dims;
override WIDTH: u32;
var<workgroup> parts: array<f32, WIDTH>;

@compute @workgroup_size(WIDTH)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(num_workgroups) blocks: vec3u,
        @builtin(local_invocation_index) at: u32) {
    let row = min(block.y * blocks.x + block.x, dims.M - 1u);
    let first = row * dims.N;
    var most = X[first];
    for (var i = at; i < dims.N; i += WIDTH) {
        most = max(most, X[first + i]);
    }
    parts[at] = most;
    workgroupBarrier();
    for (var step = WIDTH / 2u; step > 0u; step /= 2u) {
        if (at < step) {
            parts[at] = max(parts[at], parts[at + step]);
        }
        workgroupBarrier();
    }
    most = parts[0];
    workgroupBarrier();
    var sum = 0.0;
    for (var i = at; i < dims.N; i += WIDTH) {
        sum += exp(X[first + i] - most);
    }
    parts[at] = sum;
    workgroupBarrier();
    for (var step = WIDTH / 2u; step > 0u; step /= 2u) {
        if (at < step) {
            parts[at] = parts[at] + parts[at + step];
        }
        workgroupBarrier();
    }
    let scale = 1.0 / parts[0];
    for (var i = at; i < dims.N; i += WIDTH) {
        Y[first + i] = exp(X[first + i] - most) * scale;
    }
}
