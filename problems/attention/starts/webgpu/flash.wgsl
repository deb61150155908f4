/*---
# 64 queries a workgroup, 64 keys at a time: an invocation has four queries' scores of four keys, then four
# queries' sums of four columns. What has been summed is rescaled when a larger score comes, so that no score
# goes to memory. Heads over 64 columns wide compute their scores once for each 64.
launch:
  - {entry: main, grid: ["ceil_div(L, 64)", H, "ceil_div(D, 64)"]}
---*/
struct Dims { H: u32, L: u32, D: u32 }
@group(0) @binding(0) var<storage, read> Q: array<f32>;
@group(0) @binding(1) var<storage, read> K: array<f32>;
@group(0) @binding(2) var<storage, read> V: array<f32>;
@group(0) @binding(3) var<storage, read_write> O: array<f32>;
@group(0) @binding(4) var<uniform> dims: Dims;
var<workgroup> tile: array<vec4f, 1024>; // of Q and K, 16 columns of each; then of V
var<workgroup> weights: array<vec4f, 1024>;

const KEYS = 272u; // where those of K begin in `tile`
const LOWEST = -3.0e38;

fn of_q(head: u32, row: u32, d: u32) -> f32 {
    if (row < dims.L && d < dims.D) {
        return Q[head + row * dims.D + d];
    }
    return 0.0;
}

fn of_k(head: u32, row: u32, d: u32) -> f32 {
    if (row < dims.L && d < dims.D) {
        return K[head + row * dims.D + d];
    }
    return 0.0;
}

fn of_v(head: u32, row: u32, d: u32) -> f32 {
    if (row < dims.L && d < dims.D) {
        return V[head + row * dims.D + d];
    }
    return 0.0;
}

fn put(head: u32, row: u32, d: u32, sums: vec4f) {
    for (var i = 0u; i < 4u; i++) {
        if (row < dims.L && d + i < dims.D) {
            O[head + row * dims.D + d + i] = sums[i];
        }
    }
}

@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(local_invocation_id) me: vec3u) {
    let head = block.y * dims.L * dims.D;
    let first = block.x * 64u + me.y * 4u;
    let column = block.z * 64u + me.x * 4u;
    let scale = inverseSqrt(f32(dims.D));
    var o0 = vec4f();
    var o1 = vec4f();
    var o2 = vec4f();
    var o3 = vec4f();
    var most = vec4f(LOWEST); // of each query; sums: of this invocation's keys
    var sums = vec4f();
    for (var k0 = 0u; k0 < dims.L; k0 += 64u) {
        var s0 = vec4f(); // four queries' scores of a key
        var s1 = vec4f();
        var s2 = vec4f();
        var s3 = vec4f();
        for (var d0 = 0u; d0 < dims.D; d0 += 16u) {
            let d = d0 + me.x;
            let key = k0 + me.y * 4u;
            workgroupBarrier();
            tile[me.x * 17u + me.y] = vec4f(of_q(head, first, d), of_q(head, first + 1u, d),
                                            of_q(head, first + 2u, d), of_q(head, first + 3u, d));
            tile[KEYS + me.x * 17u + me.y] = vec4f(of_k(head, key, d), of_k(head, key + 1u, d),
                                                   of_k(head, key + 2u, d), of_k(head, key + 3u, d));
            workgroupBarrier();
            for (var i = 0u; i < 16u; i++) {
                let q = tile[i * 17u + me.y];
                let k = tile[KEYS + i * 17u + me.x];
                s0 += q * k.x;
                s1 += q * k.y;
                s2 += q * k.z;
                s3 += q * k.w;
            }
        }
        let key = k0 + me.x * 4u;
        s0 = select(vec4f(LOWEST), s0 * scale, key < dims.L);
        s1 = select(vec4f(LOWEST), s1 * scale, key + 1u < dims.L);
        s2 = select(vec4f(LOWEST), s2 * scale, key + 2u < dims.L);
        s3 = select(vec4f(LOWEST), s3 * scale, key + 3u < dims.L);
        weights[me.x * 17u + me.y] = max(max(s0, s1), max(s2, s3));
        workgroupBarrier();
        var higher = most;
        for (var i = 0u; i < 16u; i++) {
            higher = max(higher, weights[i * 17u + me.y]);
        }
        for (var i = me.y; i < 64u; i += 16u) {
            tile[i * 16u + me.x] = vec4f(of_v(head, k0 + i, column), of_v(head, k0 + i, column + 1u),
                                         of_v(head, k0 + i, column + 2u), of_v(head, k0 + i, column + 3u));
        }
        workgroupBarrier();
        let kept = exp(most - higher);
        most = higher;
        s0 = exp(s0 - most);
        s1 = exp(s1 - most);
        s2 = exp(s2 - most);
        s3 = exp(s3 - most);
        sums = sums * kept + ((s0 + s1) + (s2 + s3));
        let place = me.x * 64u + (me.y ^ me.x); // turned, so that neighbours' banks differ
        weights[place] = s0;
        weights[place + 16u] = s1;
        weights[place + 32u] = s2;
        weights[place + 48u] = s3;
        workgroupBarrier();
        o0 *= kept.x;
        o1 *= kept.y;
        o2 *= kept.z;
        o3 *= kept.w;
        for (var i = 0u; i < 64u; i++) {
            let p = weights[i * 16u + (me.y ^ (i / 4u))];
            let v = tile[i * 16u + me.x];
            o0 += p.x * v;
            o1 += p.y * v;
            o2 += p.z * v;
            o3 += p.w * v;
        }
    }
    workgroupBarrier();
    weights[me.x * 17u + me.y] = sums;
    workgroupBarrier();
    var total = vec4f();
    for (var i = 0u; i < 16u; i++) {
        total += weights[i * 17u + me.y];
    }
    put(head, first, column, o0 / total.x);
    put(head, first + 1u, column, o1 / total.y);
    put(head, first + 2u, column, o2 / total.z);
    put(head, first + 3u, column, o3 / total.w);
}
