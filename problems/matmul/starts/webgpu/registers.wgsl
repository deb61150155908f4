/*---
# 128 invocations, 16 by 8, compute a block of 128 x 128 numbers of C, each 16 x 8 of them in registers. They
# share 16 columns of A and 16 rows of B as vectors of four, whose numbers lie 32 apart in memory, so that
# neighbours read and write neighbours. Numbers stand where names would: with loops over an override in place
# of the lines that fill the tiles an H100 takes 1.6 times as long.
launch:
  - {entry: main, grid: ["ceil_div(N, 128)", "ceil_div(M, 128)"]}
---*/
struct Dims { M: u32, N: u32, K: u32 }
@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read_write> C: array<f32>;
@group(0) @binding(3) var<uniform> dims: Dims;
var<workgroup> tile_a: array<vec4f, 528>;
var<workgroup> tile_b: array<vec4f, 512>;

fn one_a(row: u32, k: u32) -> f32 {
    if (row < dims.M && k < dims.K) {
        return A[row * dims.K + k];
    }
    return 0.0;
}

fn one_b(k: u32, column: u32) -> f32 {
    if (k < dims.K && column < dims.N) {
        return B[k * dims.N + column];
    }
    return 0.0;
}

fn four_a(row: u32, k: u32) -> vec4f {
    return vec4f(one_a(row, k), one_a(row + 32u, k), one_a(row + 64u, k), one_a(row + 96u, k));
}

fn four_b(k: u32, column: u32) -> vec4f {
    return vec4f(one_b(k, column), one_b(k, column + 32u), one_b(k, column + 64u), one_b(k, column + 96u));
}

fn put(row: u32, column: u32, four: vec4f) {
    if (row >= dims.M) {
        return;
    }
    let at = row * dims.N + column;
    if (column < dims.N) {
        C[at] = four.x;
    }
    if (column + 32u < dims.N) {
        C[at + 32u] = four.y;
    }
    if (column + 64u < dims.N) {
        C[at + 64u] = four.z;
    }
    if (column + 96u < dims.N) {
        C[at + 96u] = four.w;
    }
}

@compute @workgroup_size(16, 8)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) at: vec3u,
        @builtin(local_invocation_index) index: u32) {
    let top = group.y * 128u;
    let left = group.x * 128u;
    var c0_0 = vec4f();
    var c0_1 = vec4f();
    var c1_0 = vec4f();
    var c1_1 = vec4f();
    var c2_0 = vec4f();
    var c2_1 = vec4f();
    var c3_0 = vec4f();
    var c3_1 = vec4f();
    var c4_0 = vec4f();
    var c4_1 = vec4f();
    var c5_0 = vec4f();
    var c5_1 = vec4f();
    var c6_0 = vec4f();
    var c6_1 = vec4f();
    var c7_0 = vec4f();
    var c7_1 = vec4f();
    var c8_0 = vec4f();
    var c8_1 = vec4f();
    var c9_0 = vec4f();
    var c9_1 = vec4f();
    var c10_0 = vec4f();
    var c10_1 = vec4f();
    var c11_0 = vec4f();
    var c11_1 = vec4f();
    var c12_0 = vec4f();
    var c12_1 = vec4f();
    var c13_0 = vec4f();
    var c13_1 = vec4f();
    var c14_0 = vec4f();
    var c14_1 = vec4f();
    var c15_0 = vec4f();
    var c15_1 = vec4f();
    for (var start = 0u; start < dims.K; start += 16u) {
        let a0 = four_a(top + (index + 0u) / 16u, start + (index + 0u) % 16u);
        let a1 = four_a(top + (index + 128u) / 16u, start + (index + 128u) % 16u);
        let a2 = four_a(top + (index + 256u) / 16u, start + (index + 256u) % 16u);
        let a3 = four_a(top + (index + 384u) / 16u, start + (index + 384u) % 16u);
        let b0 = four_b(start + (index + 0u) / 32u, left + 1u * ((index + 0u) % 32u));
        let b1 = four_b(start + (index + 128u) / 32u, left + 1u * ((index + 128u) % 32u));
        let b2 = four_b(start + (index + 256u) / 32u, left + 1u * ((index + 256u) % 32u));
        let b3 = four_b(start + (index + 384u) / 32u, left + 1u * ((index + 384u) % 32u));
        tile_a[((index + 0u) % 16u) * 33u + (index + 0u) / 16u] = a0;
        tile_a[((index + 128u) % 16u) * 33u + (index + 128u) / 16u] = a1;
        tile_a[((index + 256u) % 16u) * 33u + (index + 256u) / 16u] = a2;
        tile_a[((index + 384u) % 16u) * 33u + (index + 384u) / 16u] = a3;
        tile_b[(index + 0u)] = b0;
        tile_b[(index + 128u)] = b1;
        tile_b[(index + 256u)] = b2;
        tile_b[(index + 384u)] = b3;
        workgroupBarrier();
        for (var k = 0u; k < 16u; k += 4u) {
            let pa = k * 33u + at.y;
            let pb = k * 32u + at.x;
            let x0_0 = tile_a[pa + 0u];
            let x0_1 = tile_a[pa + 8u];
            let x0_2 = tile_a[pa + 16u];
            let x0_3 = tile_a[pa + 24u];
            let y0_0 = tile_b[pb + 0u];
            let y0_1 = tile_b[pb + 16u];
            c0_0 = fma(vec4f(x0_0.x), y0_0, c0_0);
            c0_1 = fma(vec4f(x0_0.x), y0_1, c0_1);
            c1_0 = fma(vec4f(x0_0.y), y0_0, c1_0);
            c1_1 = fma(vec4f(x0_0.y), y0_1, c1_1);
            c2_0 = fma(vec4f(x0_0.z), y0_0, c2_0);
            c2_1 = fma(vec4f(x0_0.z), y0_1, c2_1);
            c3_0 = fma(vec4f(x0_0.w), y0_0, c3_0);
            c3_1 = fma(vec4f(x0_0.w), y0_1, c3_1);
            c4_0 = fma(vec4f(x0_1.x), y0_0, c4_0);
            c4_1 = fma(vec4f(x0_1.x), y0_1, c4_1);
            c5_0 = fma(vec4f(x0_1.y), y0_0, c5_0);
            c5_1 = fma(vec4f(x0_1.y), y0_1, c5_1);
            c6_0 = fma(vec4f(x0_1.z), y0_0, c6_0);
            c6_1 = fma(vec4f(x0_1.z), y0_1, c6_1);
            c7_0 = fma(vec4f(x0_1.w), y0_0, c7_0);
            c7_1 = fma(vec4f(x0_1.w), y0_1, c7_1);
            c8_0 = fma(vec4f(x0_2.x), y0_0, c8_0);
            c8_1 = fma(vec4f(x0_2.x), y0_1, c8_1);
            c9_0 = fma(vec4f(x0_2.y), y0_0, c9_0);
            c9_1 = fma(vec4f(x0_2.y), y0_1, c9_1);
            c10_0 = fma(vec4f(x0_2.z), y0_0, c10_0);
            c10_1 = fma(vec4f(x0_2.z), y0_1, c10_1);
            c11_0 = fma(vec4f(x0_2.w), y0_0, c11_0);
            c11_1 = fma(vec4f(x0_2.w), y0_1, c11_1);
            c12_0 = fma(vec4f(x0_3.x), y0_0, c12_0);
            c12_1 = fma(vec4f(x0_3.x), y0_1, c12_1);
            c13_0 = fma(vec4f(x0_3.y), y0_0, c13_0);
            c13_1 = fma(vec4f(x0_3.y), y0_1, c13_1);
            c14_0 = fma(vec4f(x0_3.z), y0_0, c14_0);
            c14_1 = fma(vec4f(x0_3.z), y0_1, c14_1);
            c15_0 = fma(vec4f(x0_3.w), y0_0, c15_0);
            c15_1 = fma(vec4f(x0_3.w), y0_1, c15_1);
            let x1_0 = tile_a[pa + 33u];
            let x1_1 = tile_a[pa + 41u];
            let x1_2 = tile_a[pa + 49u];
            let x1_3 = tile_a[pa + 57u];
            let y1_0 = tile_b[pb + 32u];
            let y1_1 = tile_b[pb + 48u];
            c0_0 = fma(vec4f(x1_0.x), y1_0, c0_0);
            c0_1 = fma(vec4f(x1_0.x), y1_1, c0_1);
            c1_0 = fma(vec4f(x1_0.y), y1_0, c1_0);
            c1_1 = fma(vec4f(x1_0.y), y1_1, c1_1);
            c2_0 = fma(vec4f(x1_0.z), y1_0, c2_0);
            c2_1 = fma(vec4f(x1_0.z), y1_1, c2_1);
            c3_0 = fma(vec4f(x1_0.w), y1_0, c3_0);
            c3_1 = fma(vec4f(x1_0.w), y1_1, c3_1);
            c4_0 = fma(vec4f(x1_1.x), y1_0, c4_0);
            c4_1 = fma(vec4f(x1_1.x), y1_1, c4_1);
            c5_0 = fma(vec4f(x1_1.y), y1_0, c5_0);
            c5_1 = fma(vec4f(x1_1.y), y1_1, c5_1);
            c6_0 = fma(vec4f(x1_1.z), y1_0, c6_0);
            c6_1 = fma(vec4f(x1_1.z), y1_1, c6_1);
            c7_0 = fma(vec4f(x1_1.w), y1_0, c7_0);
            c7_1 = fma(vec4f(x1_1.w), y1_1, c7_1);
            c8_0 = fma(vec4f(x1_2.x), y1_0, c8_0);
            c8_1 = fma(vec4f(x1_2.x), y1_1, c8_1);
            c9_0 = fma(vec4f(x1_2.y), y1_0, c9_0);
            c9_1 = fma(vec4f(x1_2.y), y1_1, c9_1);
            c10_0 = fma(vec4f(x1_2.z), y1_0, c10_0);
            c10_1 = fma(vec4f(x1_2.z), y1_1, c10_1);
            c11_0 = fma(vec4f(x1_2.w), y1_0, c11_0);
            c11_1 = fma(vec4f(x1_2.w), y1_1, c11_1);
            c12_0 = fma(vec4f(x1_3.x), y1_0, c12_0);
            c12_1 = fma(vec4f(x1_3.x), y1_1, c12_1);
            c13_0 = fma(vec4f(x1_3.y), y1_0, c13_0);
            c13_1 = fma(vec4f(x1_3.y), y1_1, c13_1);
            c14_0 = fma(vec4f(x1_3.z), y1_0, c14_0);
            c14_1 = fma(vec4f(x1_3.z), y1_1, c14_1);
            c15_0 = fma(vec4f(x1_3.w), y1_0, c15_0);
            c15_1 = fma(vec4f(x1_3.w), y1_1, c15_1);
            let x2_0 = tile_a[pa + 66u];
            let x2_1 = tile_a[pa + 74u];
            let x2_2 = tile_a[pa + 82u];
            let x2_3 = tile_a[pa + 90u];
            let y2_0 = tile_b[pb + 64u];
            let y2_1 = tile_b[pb + 80u];
            c0_0 = fma(vec4f(x2_0.x), y2_0, c0_0);
            c0_1 = fma(vec4f(x2_0.x), y2_1, c0_1);
            c1_0 = fma(vec4f(x2_0.y), y2_0, c1_0);
            c1_1 = fma(vec4f(x2_0.y), y2_1, c1_1);
            c2_0 = fma(vec4f(x2_0.z), y2_0, c2_0);
            c2_1 = fma(vec4f(x2_0.z), y2_1, c2_1);
            c3_0 = fma(vec4f(x2_0.w), y2_0, c3_0);
            c3_1 = fma(vec4f(x2_0.w), y2_1, c3_1);
            c4_0 = fma(vec4f(x2_1.x), y2_0, c4_0);
            c4_1 = fma(vec4f(x2_1.x), y2_1, c4_1);
            c5_0 = fma(vec4f(x2_1.y), y2_0, c5_0);
            c5_1 = fma(vec4f(x2_1.y), y2_1, c5_1);
            c6_0 = fma(vec4f(x2_1.z), y2_0, c6_0);
            c6_1 = fma(vec4f(x2_1.z), y2_1, c6_1);
            c7_0 = fma(vec4f(x2_1.w), y2_0, c7_0);
            c7_1 = fma(vec4f(x2_1.w), y2_1, c7_1);
            c8_0 = fma(vec4f(x2_2.x), y2_0, c8_0);
            c8_1 = fma(vec4f(x2_2.x), y2_1, c8_1);
            c9_0 = fma(vec4f(x2_2.y), y2_0, c9_0);
            c9_1 = fma(vec4f(x2_2.y), y2_1, c9_1);
            c10_0 = fma(vec4f(x2_2.z), y2_0, c10_0);
            c10_1 = fma(vec4f(x2_2.z), y2_1, c10_1);
            c11_0 = fma(vec4f(x2_2.w), y2_0, c11_0);
            c11_1 = fma(vec4f(x2_2.w), y2_1, c11_1);
            c12_0 = fma(vec4f(x2_3.x), y2_0, c12_0);
            c12_1 = fma(vec4f(x2_3.x), y2_1, c12_1);
            c13_0 = fma(vec4f(x2_3.y), y2_0, c13_0);
            c13_1 = fma(vec4f(x2_3.y), y2_1, c13_1);
            c14_0 = fma(vec4f(x2_3.z), y2_0, c14_0);
            c14_1 = fma(vec4f(x2_3.z), y2_1, c14_1);
            c15_0 = fma(vec4f(x2_3.w), y2_0, c15_0);
            c15_1 = fma(vec4f(x2_3.w), y2_1, c15_1);
            let x3_0 = tile_a[pa + 99u];
            let x3_1 = tile_a[pa + 107u];
            let x3_2 = tile_a[pa + 115u];
            let x3_3 = tile_a[pa + 123u];
            let y3_0 = tile_b[pb + 96u];
            let y3_1 = tile_b[pb + 112u];
            c0_0 = fma(vec4f(x3_0.x), y3_0, c0_0);
            c0_1 = fma(vec4f(x3_0.x), y3_1, c0_1);
            c1_0 = fma(vec4f(x3_0.y), y3_0, c1_0);
            c1_1 = fma(vec4f(x3_0.y), y3_1, c1_1);
            c2_0 = fma(vec4f(x3_0.z), y3_0, c2_0);
            c2_1 = fma(vec4f(x3_0.z), y3_1, c2_1);
            c3_0 = fma(vec4f(x3_0.w), y3_0, c3_0);
            c3_1 = fma(vec4f(x3_0.w), y3_1, c3_1);
            c4_0 = fma(vec4f(x3_1.x), y3_0, c4_0);
            c4_1 = fma(vec4f(x3_1.x), y3_1, c4_1);
            c5_0 = fma(vec4f(x3_1.y), y3_0, c5_0);
            c5_1 = fma(vec4f(x3_1.y), y3_1, c5_1);
            c6_0 = fma(vec4f(x3_1.z), y3_0, c6_0);
            c6_1 = fma(vec4f(x3_1.z), y3_1, c6_1);
            c7_0 = fma(vec4f(x3_1.w), y3_0, c7_0);
            c7_1 = fma(vec4f(x3_1.w), y3_1, c7_1);
            c8_0 = fma(vec4f(x3_2.x), y3_0, c8_0);
            c8_1 = fma(vec4f(x3_2.x), y3_1, c8_1);
            c9_0 = fma(vec4f(x3_2.y), y3_0, c9_0);
            c9_1 = fma(vec4f(x3_2.y), y3_1, c9_1);
            c10_0 = fma(vec4f(x3_2.z), y3_0, c10_0);
            c10_1 = fma(vec4f(x3_2.z), y3_1, c10_1);
            c11_0 = fma(vec4f(x3_2.w), y3_0, c11_0);
            c11_1 = fma(vec4f(x3_2.w), y3_1, c11_1);
            c12_0 = fma(vec4f(x3_3.x), y3_0, c12_0);
            c12_1 = fma(vec4f(x3_3.x), y3_1, c12_1);
            c13_0 = fma(vec4f(x3_3.y), y3_0, c13_0);
            c13_1 = fma(vec4f(x3_3.y), y3_1, c13_1);
            c14_0 = fma(vec4f(x3_3.z), y3_0, c14_0);
            c14_1 = fma(vec4f(x3_3.z), y3_1, c14_1);
            c15_0 = fma(vec4f(x3_3.w), y3_0, c15_0);
            c15_1 = fma(vec4f(x3_3.w), y3_1, c15_1);
        }
        workgroupBarrier();
    }
    put(top + 1u * (0u + at.y) + 0u, left + 1u * (0u + at.x), c0_0);
    put(top + 1u * (0u + at.y) + 0u, left + 1u * (16u + at.x), c0_1);
    put(top + 1u * (0u + at.y) + 32u, left + 1u * (0u + at.x), c1_0);
    put(top + 1u * (0u + at.y) + 32u, left + 1u * (16u + at.x), c1_1);
    put(top + 1u * (0u + at.y) + 64u, left + 1u * (0u + at.x), c2_0);
    put(top + 1u * (0u + at.y) + 64u, left + 1u * (16u + at.x), c2_1);
    put(top + 1u * (0u + at.y) + 96u, left + 1u * (0u + at.x), c3_0);
    put(top + 1u * (0u + at.y) + 96u, left + 1u * (16u + at.x), c3_1);
    put(top + 1u * (8u + at.y) + 0u, left + 1u * (0u + at.x), c4_0);
    put(top + 1u * (8u + at.y) + 0u, left + 1u * (16u + at.x), c4_1);
    put(top + 1u * (8u + at.y) + 32u, left + 1u * (0u + at.x), c5_0);
    put(top + 1u * (8u + at.y) + 32u, left + 1u * (16u + at.x), c5_1);
    put(top + 1u * (8u + at.y) + 64u, left + 1u * (0u + at.x), c6_0);
    put(top + 1u * (8u + at.y) + 64u, left + 1u * (16u + at.x), c6_1);
    put(top + 1u * (8u + at.y) + 96u, left + 1u * (0u + at.x), c7_0);
    put(top + 1u * (8u + at.y) + 96u, left + 1u * (16u + at.x), c7_1);
    put(top + 1u * (16u + at.y) + 0u, left + 1u * (0u + at.x), c8_0);
    put(top + 1u * (16u + at.y) + 0u, left + 1u * (16u + at.x), c8_1);
    put(top + 1u * (16u + at.y) + 32u, left + 1u * (0u + at.x), c9_0);
    put(top + 1u * (16u + at.y) + 32u, left + 1u * (16u + at.x), c9_1);
    put(top + 1u * (16u + at.y) + 64u, left + 1u * (0u + at.x), c10_0);
    put(top + 1u * (16u + at.y) + 64u, left + 1u * (16u + at.x), c10_1);
    put(top + 1u * (16u + at.y) + 96u, left + 1u * (0u + at.x), c11_0);
    put(top + 1u * (16u + at.y) + 96u, left + 1u * (16u + at.x), c11_1);
    put(top + 1u * (24u + at.y) + 0u, left + 1u * (0u + at.x), c12_0);
    put(top + 1u * (24u + at.y) + 0u, left + 1u * (16u + at.x), c12_1);
    put(top + 1u * (24u + at.y) + 32u, left + 1u * (0u + at.x), c13_0);
    put(top + 1u * (24u + at.y) + 32u, left + 1u * (16u + at.x), c13_1);
    put(top + 1u * (24u + at.y) + 64u, left + 1u * (0u + at.x), c14_0);
    put(top + 1u * (24u + at.y) + 64u, left + 1u * (16u + at.x), c14_1);
    put(top + 1u * (24u + at.y) + 96u, left + 1u * (0u + at.x), c15_0);
    put(top + 1u * (24u + at.y) + 96u, left + 1u * (16u + at.x), c15_1);
}
