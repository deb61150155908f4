/* eval/webgpu/structs: the structures of WebGPU's C interface, field by field as webgpu.h has them
 * (eval/webgpu/api.h); what we do not use is there for its room. */
#pragma once

#include <stddef.h>
#include <stdint.h>
typedef struct wgpu_object *wgpu_handle; /* of any kind */

struct wgpu_text { /* not terminated */
    const char *data;
    size_t length;
};
struct wgpu_chain {
    struct wgpu_chain *next;
    uint32_t type;
};
struct wgpu_callback { /* of any kind: their functions differ */
    struct wgpu_chain *next;
    uint32_t mode;
    void (*function)(void);
    void *context, *more;
};
struct wgpu_adapter_info {
    struct wgpu_chain *next;
    struct wgpu_text vendor, architecture, device, description;
    uint32_t backend, type, vendor_id, device_id, subgroup_least, subgroup_most;
};
struct wgpu_limits {
    struct wgpu_chain *next;
    uint32_t texture_1d, texture_2d, texture_3d, texture_layers;
    uint32_t bind_groups, bind_groups_and_vertex_buffers, bindings_a_group;
    uint32_t dynamic_uniforms, dynamic_storages;
    uint32_t sampled_textures, samplers, storage_buffers, storage_textures, uniform_buffers;
    uint64_t uniform_bytes, storage_bytes;
    uint32_t uniform_alignment, storage_alignment, vertex_buffers;
    uint64_t buffer_bytes;
    uint32_t vertex_attributes, vertex_stride, stage_variables, colors, color_bytes;
    uint32_t workgroup_bytes, invocations, size_x, size_y, size_z, workgroups, immediate_bytes;
};
struct wgpu_device_descriptor {
    struct wgpu_chain *next;
    struct wgpu_text label;
    size_t feature_count;
    const uint32_t *features;
    const struct wgpu_limits *limits;
    struct {
        struct wgpu_chain *next;
        struct wgpu_text label;
    } queue;
    struct wgpu_callback lost;
    struct { /* has no mode */
        struct wgpu_chain *next;
        void (*function)(void);
        void *context, *more;
    } uncaptured;
};
struct wgpu_buffer_descriptor {
    struct wgpu_chain *next;
    struct wgpu_text label;
    uint64_t usage, size;
    uint32_t mapped;
};
struct wgpu_wgsl {
    struct wgpu_chain chain;
    struct wgpu_text code;
};
struct wgpu_labelled { /* a descriptor with no more than that */
    struct wgpu_chain *next;
    struct wgpu_text label;
};
struct wgpu_constant {
    struct wgpu_chain *next;
    struct wgpu_text key;
    double value;
};
struct wgpu_pipeline_descriptor {
    struct wgpu_chain *next;
    struct wgpu_text label;
    wgpu_handle layout;
    struct {
        struct wgpu_chain *next;
        wgpu_handle module;
        struct wgpu_text entry;
        size_t constant_count;
        const struct wgpu_constant *constants;
    } compute;
};
struct wgpu_layout_entry {
    struct wgpu_chain *next;
    uint32_t binding;
    uint64_t visibility;
    uint32_t array_size;
    struct {
        struct wgpu_chain *next;
        uint32_t type, dynamic;
        uint64_t least_bytes;
    } buffer;
    struct {
        struct wgpu_chain *next;
        uint32_t type;
    } sampler;
    struct {
        struct wgpu_chain *next;
        uint32_t type, dimension, multisampled;
    } texture;
    struct {
        struct wgpu_chain *next;
        uint32_t access, format, dimension;
    } storage_texture;
};
struct wgpu_list_descriptor { /* of a bind group's layout, or of a pipeline's */
    struct wgpu_chain *next;
    struct wgpu_text label;
    size_t count;
    const void *items; /* struct wgpu_layout_entry; wgpu_handle */
    uint32_t immediate_bytes;
};
struct wgpu_group_entry {
    struct wgpu_chain *next;
    uint32_t binding;
    wgpu_handle buffer;
    uint64_t offset, size;
    wgpu_handle sampler, texture;
};
struct wgpu_group_descriptor {
    struct wgpu_chain *next;
    struct wgpu_text label;
    wgpu_handle layout;
    size_t count;
    const struct wgpu_group_entry *entries;
};
struct wgpu_query_descriptor {
    struct wgpu_chain *next;
    struct wgpu_text label;
    uint32_t type, count;
};
struct wgpu_timestamps {
    struct wgpu_chain *next;
    wgpu_handle set;
    uint32_t begin, end;
};
struct wgpu_pass_descriptor {
    struct wgpu_chain *next;
    struct wgpu_text label;
    const struct wgpu_timestamps *timestamps;
};
struct wgpu_enumerate_options {
    const struct wgpu_chain *next;
    uint64_t backends;
};
