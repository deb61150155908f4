/*---
# A product of F, [K, C R S], and what each number of Y meets of X.
# Each invocation keeps 16 x 8 numbers of Y in registers. Its workgroup shares DEPTH columns of F and DEPTH
# rows of the other as vectors of four, whose numbers lie 4 TY or 2 TX apart in memory, so that neighbours read
# and write neighbours.
tune:
  TX: [16, 8]
  TY: [4, 8, 16]
  DEPTH: [16, 8, 32]
  where: 16 * DEPTH * (4 * TY + 1 + 2 * TX) <= workgroup_bytes && TX * TY <= max_invocations
launch:
  - {entry: main, grid: ["ceil_div(N * OH * OW, TX * 8)", "ceil_div(K, TY * 16)"]}
---*/
override TX: u32;
override TY: u32;
override DEPTH: u32;

struct Dims { N: u32, C: u32, H: u32, W: u32, K: u32, R: u32, S: u32, PAD: u32, STRIDE: u32, OH: u32, OW: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read> F: array<f32>;
@group(0) @binding(2) var<storage, read_write> Y: array<f32>;
@group(0) @binding(3) var<uniform> dims: Dims;

override PITCH = 4u * TY + 1u; // of tile_a, in vectors: one more than it needs keeps banks apart
var<workgroup> tile_a: array<vec4f, DEPTH * PITCH>;
var<workgroup> tile_b: array<vec4f, DEPTH * 2u * TX>;

fn one_a(row: u32, k: u32) -> f32 {
    let depth = dims.C * dims.R * dims.S;
    if (row < dims.K && k < depth) {
        return F[row * depth + k];
    }
    return 0.0;
}

fn four_a(row: u32, k: u32) -> vec4f {
    return vec4f(one_a(row, k), one_a(row + 4u * TY, k), one_a(row + 8u * TY, k),
                 one_a(row + 12u * TY, k));
}

struct Places { image: vec4i, top: vec4i, left: vec4i } // of four numbers of Y: where they begin in X

fn places(column: u32) -> Places {
    let at = vec4u(column) + vec4u(0u, 2u, 4u, 6u) * TX;
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
        let at = column + 2u * TX * i;
        if (row < dims.K && at < dims.N * size) {
            Y[(at / size * dims.K + row) * size + at % size] = four[i];
        }
    }
}

@compute @workgroup_size(TX, TY)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) at: vec3u,
        @builtin(local_invocation_index) index: u32) {
    let top = group.y * TY * 16u;
    let left = group.x * TX * 8u;
    let from_x = places(left + index % (2u * TX)); // TY is even: the same in every round
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
    var c8l = vec4f();
    var c8r = vec4f();
    var c9l = vec4f();
    var c9r = vec4f();
    var c10l = vec4f();
    var c10r = vec4f();
    var c11l = vec4f();
    var c11r = vec4f();
    var c12l = vec4f();
    var c12r = vec4f();
    var c13l = vec4f();
    var c13r = vec4f();
    var c14l = vec4f();
    var c14r = vec4f();
    var c15l = vec4f();
    var c15r = vec4f();
    for (var start = 0u; start < dims.C * dims.R * dims.S; start += DEPTH) {
        for (var i = index; i < 4u * TY * DEPTH; i += TX * TY) {
            tile_a[(i % DEPTH) * PITCH + i / DEPTH] = four_a(top + i / DEPTH, start + i % DEPTH);
        }
        for (var i = index; i < 2u * TX * DEPTH; i += TX * TY) {
            tile_b[i] = four_b(start + i / (2u * TX), from_x);
        }
        workgroupBarrier();
        for (var k = 0u; k < DEPTH; k += 4u) {
            let pa = k * PITCH + at.y;
            let pb = k * 2u * TX + at.x;
            let a00 = tile_a[pa];
            let a01 = tile_a[pa + TY];
            let a02 = tile_a[pa + 2u * TY];
            let a03 = tile_a[pa + 3u * TY];
            let b0l = tile_b[pb];
            let b0r = tile_b[pb + TX];
            c0l = fma(vec4f(a00.x), b0l, c0l);
            c0r = fma(vec4f(a00.x), b0r, c0r);
            c1l = fma(vec4f(a00.y), b0l, c1l);
            c1r = fma(vec4f(a00.y), b0r, c1r);
            c2l = fma(vec4f(a00.z), b0l, c2l);
            c2r = fma(vec4f(a00.z), b0r, c2r);
            c3l = fma(vec4f(a00.w), b0l, c3l);
            c3r = fma(vec4f(a00.w), b0r, c3r);
            c4l = fma(vec4f(a01.x), b0l, c4l);
            c4r = fma(vec4f(a01.x), b0r, c4r);
            c5l = fma(vec4f(a01.y), b0l, c5l);
            c5r = fma(vec4f(a01.y), b0r, c5r);
            c6l = fma(vec4f(a01.z), b0l, c6l);
            c6r = fma(vec4f(a01.z), b0r, c6r);
            c7l = fma(vec4f(a01.w), b0l, c7l);
            c7r = fma(vec4f(a01.w), b0r, c7r);
            c8l = fma(vec4f(a02.x), b0l, c8l);
            c8r = fma(vec4f(a02.x), b0r, c8r);
            c9l = fma(vec4f(a02.y), b0l, c9l);
            c9r = fma(vec4f(a02.y), b0r, c9r);
            c10l = fma(vec4f(a02.z), b0l, c10l);
            c10r = fma(vec4f(a02.z), b0r, c10r);
            c11l = fma(vec4f(a02.w), b0l, c11l);
            c11r = fma(vec4f(a02.w), b0r, c11r);
            c12l = fma(vec4f(a03.x), b0l, c12l);
            c12r = fma(vec4f(a03.x), b0r, c12r);
            c13l = fma(vec4f(a03.y), b0l, c13l);
            c13r = fma(vec4f(a03.y), b0r, c13r);
            c14l = fma(vec4f(a03.z), b0l, c14l);
            c14r = fma(vec4f(a03.z), b0r, c14r);
            c15l = fma(vec4f(a03.w), b0l, c15l);
            c15r = fma(vec4f(a03.w), b0r, c15r);
            let a10 = tile_a[pa + PITCH];
            let a11 = tile_a[pa + PITCH + TY];
            let a12 = tile_a[pa + PITCH + 2u * TY];
            let a13 = tile_a[pa + PITCH + 3u * TY];
            let b1l = tile_b[pb + 2u * TX];
            let b1r = tile_b[pb + 2u * TX + TX];
            c0l = fma(vec4f(a10.x), b1l, c0l);
            c0r = fma(vec4f(a10.x), b1r, c0r);
            c1l = fma(vec4f(a10.y), b1l, c1l);
            c1r = fma(vec4f(a10.y), b1r, c1r);
            c2l = fma(vec4f(a10.z), b1l, c2l);
            c2r = fma(vec4f(a10.z), b1r, c2r);
            c3l = fma(vec4f(a10.w), b1l, c3l);
            c3r = fma(vec4f(a10.w), b1r, c3r);
            c4l = fma(vec4f(a11.x), b1l, c4l);
            c4r = fma(vec4f(a11.x), b1r, c4r);
            c5l = fma(vec4f(a11.y), b1l, c5l);
            c5r = fma(vec4f(a11.y), b1r, c5r);
            c6l = fma(vec4f(a11.z), b1l, c6l);
            c6r = fma(vec4f(a11.z), b1r, c6r);
            c7l = fma(vec4f(a11.w), b1l, c7l);
            c7r = fma(vec4f(a11.w), b1r, c7r);
            c8l = fma(vec4f(a12.x), b1l, c8l);
            c8r = fma(vec4f(a12.x), b1r, c8r);
            c9l = fma(vec4f(a12.y), b1l, c9l);
            c9r = fma(vec4f(a12.y), b1r, c9r);
            c10l = fma(vec4f(a12.z), b1l, c10l);
            c10r = fma(vec4f(a12.z), b1r, c10r);
            c11l = fma(vec4f(a12.w), b1l, c11l);
            c11r = fma(vec4f(a12.w), b1r, c11r);
            c12l = fma(vec4f(a13.x), b1l, c12l);
            c12r = fma(vec4f(a13.x), b1r, c12r);
            c13l = fma(vec4f(a13.y), b1l, c13l);
            c13r = fma(vec4f(a13.y), b1r, c13r);
            c14l = fma(vec4f(a13.z), b1l, c14l);
            c14r = fma(vec4f(a13.z), b1r, c14r);
            c15l = fma(vec4f(a13.w), b1l, c15l);
            c15r = fma(vec4f(a13.w), b1r, c15r);
            let a20 = tile_a[pa + 2u * PITCH];
            let a21 = tile_a[pa + 2u * PITCH + TY];
            let a22 = tile_a[pa + 2u * PITCH + 2u * TY];
            let a23 = tile_a[pa + 2u * PITCH + 3u * TY];
            let b2l = tile_b[pb + 4u * TX];
            let b2r = tile_b[pb + 4u * TX + TX];
            c0l = fma(vec4f(a20.x), b2l, c0l);
            c0r = fma(vec4f(a20.x), b2r, c0r);
            c1l = fma(vec4f(a20.y), b2l, c1l);
            c1r = fma(vec4f(a20.y), b2r, c1r);
            c2l = fma(vec4f(a20.z), b2l, c2l);
            c2r = fma(vec4f(a20.z), b2r, c2r);
            c3l = fma(vec4f(a20.w), b2l, c3l);
            c3r = fma(vec4f(a20.w), b2r, c3r);
            c4l = fma(vec4f(a21.x), b2l, c4l);
            c4r = fma(vec4f(a21.x), b2r, c4r);
            c5l = fma(vec4f(a21.y), b2l, c5l);
            c5r = fma(vec4f(a21.y), b2r, c5r);
            c6l = fma(vec4f(a21.z), b2l, c6l);
            c6r = fma(vec4f(a21.z), b2r, c6r);
            c7l = fma(vec4f(a21.w), b2l, c7l);
            c7r = fma(vec4f(a21.w), b2r, c7r);
            c8l = fma(vec4f(a22.x), b2l, c8l);
            c8r = fma(vec4f(a22.x), b2r, c8r);
            c9l = fma(vec4f(a22.y), b2l, c9l);
            c9r = fma(vec4f(a22.y), b2r, c9r);
            c10l = fma(vec4f(a22.z), b2l, c10l);
            c10r = fma(vec4f(a22.z), b2r, c10r);
            c11l = fma(vec4f(a22.w), b2l, c11l);
            c11r = fma(vec4f(a22.w), b2r, c11r);
            c12l = fma(vec4f(a23.x), b2l, c12l);
            c12r = fma(vec4f(a23.x), b2r, c12r);
            c13l = fma(vec4f(a23.y), b2l, c13l);
            c13r = fma(vec4f(a23.y), b2r, c13r);
            c14l = fma(vec4f(a23.z), b2l, c14l);
            c14r = fma(vec4f(a23.z), b2r, c14r);
            c15l = fma(vec4f(a23.w), b2l, c15l);
            c15r = fma(vec4f(a23.w), b2r, c15r);
            let a30 = tile_a[pa + 3u * PITCH];
            let a31 = tile_a[pa + 3u * PITCH + TY];
            let a32 = tile_a[pa + 3u * PITCH + 2u * TY];
            let a33 = tile_a[pa + 3u * PITCH + 3u * TY];
            let b3l = tile_b[pb + 6u * TX];
            let b3r = tile_b[pb + 6u * TX + TX];
            c0l = fma(vec4f(a30.x), b3l, c0l);
            c0r = fma(vec4f(a30.x), b3r, c0r);
            c1l = fma(vec4f(a30.y), b3l, c1l);
            c1r = fma(vec4f(a30.y), b3r, c1r);
            c2l = fma(vec4f(a30.z), b3l, c2l);
            c2r = fma(vec4f(a30.z), b3r, c2r);
            c3l = fma(vec4f(a30.w), b3l, c3l);
            c3r = fma(vec4f(a30.w), b3r, c3r);
            c4l = fma(vec4f(a31.x), b3l, c4l);
            c4r = fma(vec4f(a31.x), b3r, c4r);
            c5l = fma(vec4f(a31.y), b3l, c5l);
            c5r = fma(vec4f(a31.y), b3r, c5r);
            c6l = fma(vec4f(a31.z), b3l, c6l);
            c6r = fma(vec4f(a31.z), b3r, c6r);
            c7l = fma(vec4f(a31.w), b3l, c7l);
            c7r = fma(vec4f(a31.w), b3r, c7r);
            c8l = fma(vec4f(a32.x), b3l, c8l);
            c8r = fma(vec4f(a32.x), b3r, c8r);
            c9l = fma(vec4f(a32.y), b3l, c9l);
            c9r = fma(vec4f(a32.y), b3r, c9r);
            c10l = fma(vec4f(a32.z), b3l, c10l);
            c10r = fma(vec4f(a32.z), b3r, c10r);
            c11l = fma(vec4f(a32.w), b3l, c11l);
            c11r = fma(vec4f(a32.w), b3r, c11r);
            c12l = fma(vec4f(a33.x), b3l, c12l);
            c12r = fma(vec4f(a33.x), b3r, c12r);
            c13l = fma(vec4f(a33.y), b3l, c13l);
            c13r = fma(vec4f(a33.y), b3r, c13r);
            c14l = fma(vec4f(a33.z), b3l, c14l);
            c14r = fma(vec4f(a33.z), b3r, c14r);
            c15l = fma(vec4f(a33.w), b3l, c15l);
            c15r = fma(vec4f(a33.w), b3r, c15r);
        }
        workgroupBarrier();
    }
    let row = top + at.y;
    let column = left + at.x;
    put(row, column, c0l);
    put(row, column + TX, c0r);
    put(row + 4u * TY, column, c1l);
    put(row + 4u * TY, column + TX, c1r);
    put(row + 8u * TY, column, c2l);
    put(row + 8u * TY, column + TX, c2r);
    put(row + 12u * TY, column, c3l);
    put(row + 12u * TY, column + TX, c3r);
    put(row + TY, column, c4l);
    put(row + TY, column + TX, c4r);
    put(row + TY + 4u * TY, column, c5l);
    put(row + TY + 4u * TY, column + TX, c5r);
    put(row + TY + 8u * TY, column, c6l);
    put(row + TY + 8u * TY, column + TX, c6r);
    put(row + TY + 12u * TY, column, c7l);
    put(row + TY + 12u * TY, column + TX, c7r);
    put(row + 2u * TY, column, c8l);
    put(row + 2u * TY, column + TX, c8r);
    put(row + 2u * TY + 4u * TY, column, c9l);
    put(row + 2u * TY + 4u * TY, column + TX, c9r);
    put(row + 2u * TY + 8u * TY, column, c10l);
    put(row + 2u * TY + 8u * TY, column + TX, c10r);
    put(row + 2u * TY + 12u * TY, column, c11l);
    put(row + 2u * TY + 12u * TY, column + TX, c11r);
    put(row + 3u * TY, column, c12l);
    put(row + 3u * TY, column + TX, c12r);
    put(row + 3u * TY + 4u * TY, column, c13l);
    put(row + 3u * TY + 4u * TY, column + TX, c13r);
    put(row + 3u * TY + 8u * TY, column, c14l);
    put(row + 3u * TY + 8u * TY, column + TX, c14r);
    put(row + 3u * TY + 12u * TY, column, c15l);
    put(row + 3u * TY + 12u * TY, column + TX, c15r);
}
