/*---
# A product of F, [K, C R S], and what each number of Y meets of X. Each invocation keeps 8 x 8 numbers of
# Y in registers. Its workgroup shares SIDE columns of F and SIDE rows of the other as vectors of four,
# whose numbers lie 2 SIDE apart in memory, so that neighbours read and write neighbours. The next SIDE
# are on their way while these are multiplied.
tune:
  SIDE: [8, 16]
  where: 128 * SIDE * SIDE <= workgroup_bytes && SIDE * SIDE <= max_invocations
launch:
  - {entry: main, grid: ["ceil_div(N * OH * OW, SIDE * 8)", "ceil_div(K, SIDE * 8)"]}
---*/
override SIDE: u32;

struct Dims { N: u32, C: u32, H: u32, W: u32, K: u32, R: u32, S: u32, PAD: u32, STRIDE: u32, OH: u32, OW: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read> F: array<f32>;
@group(0) @binding(2) var<storage, read_write> Y: array<f32>;
@group(0) @binding(3) var<uniform> dims: Dims;

var<workgroup> tile_a: array<vec4f, 4u * SIDE * SIDE>; // of neighbouring k in other banks
var<workgroup> tile_b: array<vec4f, 4u * SIDE * SIDE>;

fn one_a(row: u32, k: u32) -> f32 {
    let depth = dims.C * dims.R * dims.S;
    if (row < dims.K && k < depth) {
        return F[row * depth + k];
    }
    return 0.0;
}

fn four_a(row: u32, k: u32) -> vec4f {
    return vec4f(one_a(row, k), one_a(row + 2u * SIDE, k), one_a(row + 4u * SIDE, k), one_a(row + 6u * SIDE, k));
}

struct Places { image: vec4i, top: vec4i, left: vec4i } // of four numbers of Y: where they begin in X

fn places(column: u32) -> Places {
    let at = vec4u(column) + vec4u(0u, 2u, 4u, 6u) * SIDE;
    let size = dims.OH * dims.OW;
    let image = at / size;
    let place = at % size;
    let top = vec4i(place / dims.OW * dims.STRIDE) - i32(dims.PAD);
    let left = vec4i(place % dims.OW * dims.STRIDE) - i32(dims.PAD);
    let first = vec4i(image * dims.C * dims.H * dims.W);
    return Places(select(first, vec4i(-1), image >= vec4u(dims.N)), top, left);
}

fn one_b(image: i32, h: i32, w: i32, skip: u32) -> f32 {
    if (image >= 0 && u32(h) < dims.H && u32(w) < dims.W) {
        return X[u32(image) + skip + u32(h) * dims.W + u32(w)];
    }
    return 0.0;
}

fn four_b(k: u32, first: Places) -> vec4f {
    let c = k / (dims.R * dims.S);
    if (c >= dims.C) {
        return vec4f();
    }
    let rest = k - c * dims.R * dims.S;
    let r = rest / dims.S;
    let h = first.top + i32(r);
    let w = first.left + i32(rest - r * dims.S);
    let skip = c * dims.H * dims.W;
    return vec4f(one_b(first.image.x, h.x, w.x, skip), one_b(first.image.y, h.y, w.y, skip),
                 one_b(first.image.z, h.z, w.z, skip), one_b(first.image.w, h.w, w.w, skip));
}

fn put(row: u32, column: u32, four: vec4f) {
    let size = dims.OH * dims.OW;
    for (var i = 0u; i < 4u; i++) {
        let at = column + 2u * SIDE * i;
        if (row < dims.K && at < dims.N * size) {
            Y[(at / size * dims.K + row) * size + at % size] = four[i];
        }
    }
}

@compute @workgroup_size(SIDE, SIDE)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) at: vec3u,
        @builtin(local_invocation_index) index: u32) {
    let top = group.y * SIDE * 8u;
    let left = group.x * SIDE * 8u;
    let a_row = top + at.y;
    let a_to = at.x * 2u * SIDE + (at.y ^ (at.x & 7u));
    let from_x = places(left + index % (2u * SIDE));
    let b_k = index / (2u * SIDE);
    var c0l = vec4f();
    var c0r = vec4f();
    var c1l = vec4f();
    var c1r = vec4f();
    var c2l = vec4f();
    var c2r = vec4f();
    var c3l = vec4f();
    var c3r = vec4f();
    var c4l = vec4f();
    var c4r = vec4f();
    var c5l = vec4f();
    var c5r = vec4f();
    var c6l = vec4f();
    var c6r = vec4f();
    var c7l = vec4f();
    var c7r = vec4f();
    var now = 0u;
    tile_a[a_to] = four_a(a_row, at.x);
    tile_a[a_to + SIDE] = four_a(a_row + SIDE, at.x);
    tile_b[index] = four_b(b_k, from_x);
    tile_b[index + SIDE * SIDE] = four_b(b_k + SIDE / 2u, from_x);
    workgroupBarrier();
    for (var start = 0u; start < dims.C * dims.R * dims.S; start += SIDE) {
        let next = start + SIDE;
        let a0 = four_a(a_row, next + at.x);
        let a1 = four_a(a_row + SIDE, next + at.x);
        let b0 = four_b(next + b_k, from_x);
        let b1 = four_b(next + b_k + SIDE / 2u, from_x);
        for (var k = 0u; k < SIDE; k++) {
            let at_a = (now + k) * 2u * SIDE + (at.y ^ (k & 7u));
            let at_b = (now + k) * 2u * SIDE + at.x;
            let at_top = tile_a[at_a];
            let at_low = tile_a[at_a + SIDE];
            let at_left = tile_b[at_b];
            let at_right = tile_b[at_b + SIDE];
            c0l = fma(vec4f(at_top.x), at_left, c0l);
            c0r = fma(vec4f(at_top.x), at_right, c0r);
            c1l = fma(vec4f(at_top.y), at_left, c1l);
            c1r = fma(vec4f(at_top.y), at_right, c1r);
            c2l = fma(vec4f(at_top.z), at_left, c2l);
            c2r = fma(vec4f(at_top.z), at_right, c2r);
            c3l = fma(vec4f(at_top.w), at_left, c3l);
            c3r = fma(vec4f(at_top.w), at_right, c3r);
            c4l = fma(vec4f(at_low.x), at_left, c4l);
            c4r = fma(vec4f(at_low.x), at_right, c4r);
            c5l = fma(vec4f(at_low.y), at_left, c5l);
            c5r = fma(vec4f(at_low.y), at_right, c5r);
            c6l = fma(vec4f(at_low.z), at_left, c6l);
            c6r = fma(vec4f(at_low.z), at_right, c6r);
            c7l = fma(vec4f(at_low.w), at_left, c7l);
            c7r = fma(vec4f(at_low.w), at_right, c7r);
        }
        now = SIDE - now;
        tile_a[now * 2u * SIDE + a_to] = a0;
        tile_a[now * 2u * SIDE + a_to + SIDE] = a1;
        tile_b[now * 2u * SIDE + index] = b0;
        tile_b[now * 2u * SIDE + index + SIDE * SIDE] = b1;
        workgroupBarrier();
    }
    let row = top + at.y;
    let column = left + at.x;
    put(row, column, c0l);
    put(row, column + SIDE, c0r);
    put(row + 2u * SIDE, column, c1l);
    put(row + 2u * SIDE, column + SIDE, c1r);
    put(row + 4u * SIDE, column, c2l);
    put(row + 4u * SIDE, column + SIDE, c2r);
    put(row + 6u * SIDE, column, c3l);
    put(row + 6u * SIDE, column + SIDE, c3r);
    put(row + SIDE, column, c4l);
    put(row + SIDE, column + SIDE, c4r);
    put(row + SIDE + 2u * SIDE, column, c5l);
    put(row + SIDE + 2u * SIDE, column + SIDE, c5r);
    put(row + SIDE + 4u * SIDE, column, c6l);
    put(row + SIDE + 4u * SIDE, column + SIDE, c6r);
    put(row + SIDE + 6u * SIDE, column, c7l);
    put(row + SIDE + 6u * SIDE, column + SIDE, c7r);
}
