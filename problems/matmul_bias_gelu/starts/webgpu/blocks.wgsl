/*---
# Each invocation computes ROWS x COLUMNS numbers of C in registers, from rows of A and columns of
# B that its workgroup shares.
tune:
  WX: [8, 16, 32]
  WY: [8, 4, 16]
  ROWS: [4, 2, 8, 1]
  COLUMNS: [4, 2, 8, 1]
  DEPTH: [8, 16, 32]
  where: 4 * DEPTH * (WX * COLUMNS + WY * ROWS) <= workgroup_bytes
launch:
  - {entry: main, grid: ["ceil_div(N, WX * COLUMNS)", "ceil_div(M, WY * ROWS)"]}
---*/
override WX: u32;
override WY: u32;
override ROWS: u32;
override COLUMNS: u32;
override DEPTH: u32;

struct Dims { M: u32, N: u32, K: u32 }
@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> C: array<f32>;
@group(0) @binding(4) var<uniform> dims: Dims;

var<workgroup> tile_a: array<f32, DEPTH * WY * ROWS>;
var<workgroup> tile_b: array<f32, DEPTH * WX * COLUMNS>;

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

@compute @workgroup_size(WX, WY)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(local_invocation_id) at: vec3u,
        @builtin(local_invocation_index) index: u32) {
    let high = WY * ROWS;
    let wide = WX * COLUMNS;
    let top = block.y * high;
    let left = block.x * wide;
    var sums: array<f32, 64>;
    for (var start = 0u; start < dims.K; start += DEPTH) {
        for (var i = index; i < DEPTH * high; i += WX * WY) {
            let row = top + i / DEPTH;
            let k = start + i % DEPTH;
            var value = 0.0;
            if (row < dims.M && k < dims.K) {
                value = A[row * dims.K + k];
            }
            tile_a[(i % DEPTH) * high + i / DEPTH] = value;
        }
        for (var i = index; i < DEPTH * wide; i += WX * WY) {
            let k = start + i / wide;
            let column = left + i % wide;
            var value = 0.0;
            if (k < dims.K && column < dims.N) {
                value = B[k * dims.N + column];
            }
            tile_b[i] = value;
        }
        workgroupBarrier();
        for (var k = 0u; k < DEPTH; k++) {
            for (var r = 0u; r < ROWS; r++) {
                let a = tile_a[k * high + at.y * ROWS + r];
                for (var c = 0u; c < COLUMNS; c++) {
                    sums[r * COLUMNS + c] += a * tile_b[k * wide + c * WX + at.x];
                }
            }
        }
        workgroupBarrier();
    }
    for (var r = 0u; r < ROWS; r++) {
        let row = top + at.y * ROWS + r;
        for (var c = 0u; c < COLUMNS; c++) {
            let column = left + c * WX + at.x;
            if (row < dims.M && column < dims.N) {
                C[row * dims.N + column] = gelu(sums[r * COLUMNS + c] + bias[column]);
            }
        }
    }
}
