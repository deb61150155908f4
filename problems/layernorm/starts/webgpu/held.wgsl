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
@group(0) @binding(1) var<storage, read> gamma: array<f32>;
@group(0) @binding(2) var<storage, read> beta: array<f32>;
@group(0) @binding(3) var<storage, read_write> Y: array<f32>;
@group(0) @binding(4) var<uniform> dims: Dims;
var<workgroup> parts: array<f32, WIDTH>;
var<workgroup> few: array<f32, 16>;

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

fn sum_four(four: vec4f) -> f32 {
    return (four.x + four.y) + (four.z + four.w);
}

/* Squares of how far they are from the mean. */
fn spread(i: u32, x: vec4f, mean: f32) -> f32 {
    let off = select(vec4f(), x - mean, vec4u(i, i + WIDTH, i + 2u * WIDTH, i + 3u * WIDTH) < vec4u(dims.N));
    return dot(off, off);
}

fn put(first: u32, i: u32, x: vec4f, mean: f32, scale: f32) {
    for (var j = 0u; j < 4u; j++) {
        let at = i + j * WIDTH;
        if (at < dims.N) {
            Y[first + at] = (x[j] - mean) * scale * gamma[at] + beta[at];
        }
    }
}

@compute @workgroup_size(WIDTH)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(num_workgroups) blocks: vec3u,
        @builtin(local_invocation_index) at: u32) {
    let row = min(block.y * blocks.x + block.x, dims.M - 1u);
    let first = row * dims.N;
    let step = 4u * WIDTH;
    let x0 = four(first, at, 0.0);
    let x1 = four(first, at + step, 0.0);
    let x2 = four(first, at + 2u * step, 0.0);
    let x3 = four(first, at + 3u * step, 0.0);
    let x4 = four(first, at + 4u * step, 0.0);
    let x5 = four(first, at + 5u * step, 0.0);
    let x6 = four(first, at + 6u * step, 0.0);
    let x7 = four(first, at + 7u * step, 0.0);
    var sum = sum_four(x0) +
              sum_four(x1) +
              sum_four(x2) +
              sum_four(x3) +
              sum_four(x4) +
              sum_four(x5) +
              sum_four(x6) +
              sum_four(x7);
    for (var i = at + 8u * step; i < dims.N; i += step) {
        sum += sum_four(four(first, i, 0.0));
    }
    let mean = sum_of(at, sum) / f32(dims.N);
    var squares = spread(at, x0, mean) +
                  spread(at + step, x1, mean) +
                  spread(at + 2u * step, x2, mean) +
                  spread(at + 3u * step, x3, mean) +
                  spread(at + 4u * step, x4, mean) +
                  spread(at + 5u * step, x5, mean) +
                  spread(at + 6u * step, x6, mean) +
                  spread(at + 7u * step, x7, mean);
    for (var i = at + 8u * step; i < dims.N; i += step) {
        squares += spread(i, four(first, i, 0.0), mean);
    }
    let scale = 1.0 / sqrt(sum_of(at, squares) / f32(dims.N) + 1e-5);
    put(first, at, x0, mean, scale);
    put(first, at + step, x1, mean, scale);
    put(first, at + 2u * step, x2, mean, scale);
    put(first, at + 3u * step, x3, mean, scale);
    put(first, at + 4u * step, x4, mean, scale);
    put(first, at + 5u * step, x5, mean, scale);
    put(first, at + 6u * step, x6, mean, scale);
    put(first, at + 7u * step, x7, mean, scale);
    for (var i = at + 8u * step; i < dims.N; i += step) {
        put(first, i, four(first, i, 0.0), mean, scale);
    }
}
