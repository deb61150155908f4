/*---
tune:
  TILE: [16, 32, 8]
  WIDTH: [64, 128, 256]
  where: WIDTH >= TILE
launch:
  - {entry: main, grid: ["ceil_div(N, TILE)", "min(ceil_div(M, TILE), 65535)", "ceil_div(ceil_div(M, TILE), 65535)"]}
---*/
struct Dims { M: u32, N: u32 }
@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read_write> B: array<f32>;
@group(0) @binding(2) var<uniform> dims: Dims;
override TILE: u32;
override WIDTH: u32;
var<workgroup> tile: array<f32, TILE * (TILE + 1)>;

@compute @workgroup_size(WIDTH)
fn main(@builtin(workgroup_id) block: vec3u, @builtin(num_workgroups) blocks: vec3u,
        @builtin(local_invocation_index) at: u32) {
    let tile_row = block.z * blocks.y + block.y;
    for (var i = at / TILE; i < TILE; i += WIDTH / TILE) {
        let row = tile_row * TILE + i;
        let column = block.x * TILE + at % TILE;
        if (row < dims.M && column < dims.N) {
            tile[i * (TILE + 1u) + at % TILE] = A[row * dims.N + column];
        }
    }
    workgroupBarrier();
    for (var i = at / TILE; i < TILE; i += WIDTH / TILE) {
        let row = block.x * TILE + i;
        let column = tile_row * TILE + at % TILE;
        if (row < dims.N && column < dims.M) {
            B[row * dims.M + column] = tile[(at % TILE) * (TILE + 1u) + i];
        }
    }
}
