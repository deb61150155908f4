/*---
tune: {WIDTH: [64, 128, 256], EACH: [1, 2, 4, 8]}
launch:
  - {entry: main, grid: ["ceil_div(OH * OW, WIDTH * EACH)", K, N]}
---*/
struct Dims { N: u32, C: u32, H: u32, W: u32, K: u32, R: u32, S: u32, PAD: u32, STRIDE: u32, OH: u32, OW: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read> F: array<f32>;
@group(0) @binding(2) var<storage, read> mean: array<f32>;
@group(0) @binding(3) var<storage, read> variance: array<f32>;
@group(0) @binding(4) var<storage, read> gamma: array<f32>;
@group(0) @binding(5) var<storage, read> beta: array<f32>;
@group(0) @binding(6) var<storage, read_write> Y: array<f32>;
@group(0) @binding(7) var<uniform> dims: Dims;
override WIDTH: u32;
override EACH: u32;

fn silu(x: f32) -> f32 {
    let e = exp(-abs(x)); // in [0, 1]: nothing overflows
    return x * select(e, 1.0, x >= 0.0) / (1.0 + e);
}

fn value(plane: u32, y: u32, x: u32) -> f32 {
    let image = plane / dims.K;
    let filter_at = plane % dims.K;
    let top = i32(y * dims.STRIDE) - i32(dims.PAD);
    let left = i32(x * dims.STRIDE) - i32(dims.PAD);
    var sum = 0.0;
    for (var c = 0u; c < dims.C; c++) {
        for (var r = 0u; r < dims.R; r++) {
            let h = top + i32(r);
            if (h < 0 || h >= i32(dims.H)) {
                continue;
            }
            for (var s = 0u; s < dims.S; s++) {
                let w = left + i32(s);
                if (w >= 0 && w < i32(dims.W)) {
                    sum += X[((image * dims.C + c) * dims.H + u32(h)) * dims.W + u32(w)] *
                           F[((filter_at * dims.C + c) * dims.R + r) * dims.S + s];
                }
            }
        }
    }
    return silu((sum - mean[filter_at]) / sqrt(variance[filter_at] + 1e-5) * gamma[filter_at] + beta[filter_at]);
}

@compute @workgroup_size(WIDTH)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(local_invocation_index) at: u32) {
    let plane = block.z * dims.K + block.y;
    for (var i = 0u; i < EACH; i++) {
        let place = (block.x * EACH + i) * WIDTH + at;
        if (place < dims.OH * dims.OW) {
            Y[plane * dims.OH * dims.OW + place] = value(plane, place / dims.OW, place % dims.OW);
        }
    }
}
