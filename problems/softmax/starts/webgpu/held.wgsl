/*---
# A workgroup a row, read once: 32 numbers of each invocation stay in registers, what is beyond them is
# read again.
tune:
  WIDTH: [128, 256, 512, 64, 1024]
  where: WIDTH <= max_invocations
launch:
  - {entry: main, grid: ["min(M, 65535)", "ceil_div(M, 65535)"]}
---*/
override WIDTH: u32;
struct Dims { M: u32, N: u32 }
@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read_write> Y: array<f32>;
@group(0) @binding(2) var<uniform> dims: Dims;
var<workgroup> parts: array<f32, WIDTH>;
var<workgroup> few: array<f32, 16>;

/* The workgroup's largest. */
fn most_of(at: u32, own: f32) -> f32 {
    parts[at] = own;
    workgroupBarrier();
    if (at < 16u) {
        var part = parts[at];
        for (var i = at + 16u; i < WIDTH; i += 16u) {
            part = max(part, parts[i]);
        }
        few[at] = part;
    }
    workgroupBarrier();
    var all = few[0];
    for (var i = 1u; i < 16u; i++) {
        all = max(all, few[i]);
    }
    return all;
}

/* The workgroup's sum. */
fn sum_of(at: u32, own: f32) -> f32 {
    parts[at] = own;
    workgroupBarrier();
    if (at < 16u) {
        var part = parts[at];
        for (var i = at + 16u; i < WIDTH; i += 16u) {
            part += parts[i];
        }
        few[at] = part;
    }
    workgroupBarrier();
    var all = few[0];
    for (var i = 1u; i < 16u; i++) {
        all += few[i];
    }
    return all;
}

fn one(first: u32, i: u32, otherwise: f32) -> f32 {
    if (i < dims.N) {
        return X[first + i];
    }
    return otherwise;
}

/* Four of a row, WIDTH apart. */
fn four(first: u32, i: u32, otherwise: f32) -> vec4f {
    return vec4f(one(first, i, otherwise), one(first, i + WIDTH, otherwise),
                 one(first, i + 2u * WIDTH, otherwise), one(first, i + 3u * WIDTH, otherwise));
}

fn sum_four(i: u32, x: vec4f, most: f32) -> f32 {
    let e = select(vec4f(), exp(x - most), vec4u(i, i + WIDTH, i + 2u * WIDTH, i + 3u * WIDTH) < vec4u(dims.N));
    return (e.x + e.y) + (e.z + e.w);
}

fn put(first: u32, i: u32, x: vec4f, most: f32, scale: f32) {
    for (var j = 0u; j < 4u; j++) {
        if (i + j * WIDTH < dims.N) {
            Y[first + i + j * WIDTH] = exp(x[j] - most) * scale;
        }
    }
}

@compute @workgroup_size(WIDTH)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(num_workgroups) blocks: vec3u,
        @builtin(local_invocation_index) at: u32) {
    let row = min(block.y * blocks.x + block.x, dims.M - 1u);
    let first = row * dims.N;
    let step = 4u * WIDTH;
    let any = X[first];
    let x0 = four(first, at, any);
    let x1 = four(first, at + step, any);
    let x2 = four(first, at + 2u * step, any);
    let x3 = four(first, at + 3u * step, any);
    let x4 = four(first, at + 4u * step, any);
    let x5 = four(first, at + 5u * step, any);
    let x6 = four(first, at + 6u * step, any);
    let x7 = four(first, at + 7u * step, any);
    var four_most = max(max(max(x0, x1), max(x2, x3)), max(max(x4, x5), max(x6, x7)));
    for (var i = at + 8u * step; i < dims.N; i += step) {
        four_most = max(four_most, four(first, i, any));
    }
    let most = most_of(at, max(max(four_most.x, four_most.y), max(four_most.z, four_most.w)));
    var sum = sum_four(at, x0, most) +
              sum_four(at + step, x1, most) +
              sum_four(at + 2u * step, x2, most) +
              sum_four(at + 3u * step, x3, most) +
              sum_four(at + 4u * step, x4, most) +
              sum_four(at + 5u * step, x5, most) +
              sum_four(at + 6u * step, x6, most) +
              sum_four(at + 7u * step, x7, most);
    for (var i = at + 8u * step; i < dims.N; i += step) {
        sum += sum_four(i, four(first, i, any), most);
    }
    let scale = 1.0 / sum_of(at, sum);
    put(first, at, x0, most, scale);
    put(first, at + step, x1, most, scale);
    put(first, at + 2u * step, x2, most, scale);
    put(first, at + 3u * step, x3, most, scale);
    put(first, at + 4u * step, x4, most, scale);
    put(first, at + 5u * step, x5, most, scale);
    put(first, at + 6u * step, x6, most, scale);
    put(first, at + 7u * step, x7, most, scale);
    for (var i = at + 8u * step; i < dims.N; i += step) {
        put(first, i, four(first, i, any), most, scale);
    }
}
