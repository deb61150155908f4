/*---
launch: [{entry: twice, grid: [4]}]
---*/
/* a problem without dims: there is nothing to bind for them */
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(256)
fn twice(@builtin(global_invocation_id) id: vec3u) {
    if (id.x < 1000u) {
        y[id.x] = x[id.x] + x[id.x];
    }
}
