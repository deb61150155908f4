/* eval/webgpu/api: what we call of the C interface of WebGPU (webgpu.h of the webgpu-native group,
 * as wgpu-native has it since version 29), declared here by its documentation: the library is
 * opened where it is found, and no header of it is needed. Runner processes only. */
#pragma once

#include "eval/webgpu/structs.h"

enum {
    WGPU_BUFFER_MAP_READ = 0x1,
    WGPU_BUFFER_COPY_SRC = 0x4,
    WGPU_BUFFER_COPY_DST = 0x8,
    WGPU_BUFFER_UNIFORM = 0x40,
    WGPU_BUFFER_STORAGE = 0x80,
    WGPU_BUFFER_QUERY_RESOLVE = 0x200
};
enum { WGPU_STYPE_WGSL = 2, WGPU_STYPE_INSTANCE_EXTRAS = 0x00030004 };
enum { WGPU_SPONTANEOUS = 3 };
enum { WGPU_SUCCESS = 1 };
enum { WGPU_FEATURE_TIMESTAMPS = 0x9, WGPU_FEATURE_F16 = 0xB, WGPU_FEATURE_SUBGROUPS = 0x30021 };
enum { WGPU_FILTER_VALIDATION = 1, WGPU_FILTER_MEMORY = 2 }; /* wgpu-native panics at a third */
enum { WGPU_ERROR_NONE = 1, WGPU_ERROR_VALIDATION = 2, WGPU_ERROR_MEMORY = 3 };
enum { WGPU_BINDING_UNIFORM = 2, WGPU_BINDING_STORAGE = 3, WGPU_BINDING_READ_ONLY = 4 };
enum { WGPU_STAGE_COMPUTE = 4 };
enum { WGPU_QUERY_TIMESTAMP = 2 };
enum { WGPU_MAP_READ = 1 };
enum { WGPU_BACKEND_METAL = 5, WGPU_BACKEND_D3D12 = 4, WGPU_BACKEND_VULKAN = 6 };
enum { WGPU_ADAPTER_DISCRETE = 1, WGPU_ADAPTER_INTEGRATED = 2, WGPU_ADAPTER_CPU = 3 };
/* Bits of wgpuInstanceEnumerateAdapters(): never OpenGL, whose results are another kind's. */
enum { WGPU_INSTANCE_VULKAN = 1, WGPU_INSTANCE_METAL = 4, WGPU_INSTANCE_D3D12 = 8 };

/* X(member, symbol, result, arguments) */
#define WGPU_FUNCTIONS(X)                                                                          \
    X(version, wgpuGetVersion, uint32_t, (void))                                                   \
    X(create_instance, wgpuCreateInstance, wgpu_handle, (const void *))                            \
    X(enumerate, wgpuInstanceEnumerateAdapters, size_t,                                            \
      (wgpu_handle, const struct wgpu_enumerate_options *, wgpu_handle *))                         \
    X(adapter_info, wgpuAdapterGetInfo, uint32_t, (wgpu_handle, struct wgpu_adapter_info *))       \
    X(adapter_limits, wgpuAdapterGetLimits, uint32_t, (wgpu_handle, struct wgpu_limits *))         \
    X(adapter_has, wgpuAdapterHasFeature, uint32_t, (wgpu_handle, uint32_t))                       \
    X(request_device, wgpuAdapterRequestDevice, uint64_t,                                          \
      (wgpu_handle, const struct wgpu_device_descriptor *, struct wgpu_callback))                  \
    X(queue, wgpuDeviceGetQueue, wgpu_handle, (wgpu_handle))                                       \
    X(poll, wgpuDevicePoll, uint32_t, (wgpu_handle, uint32_t, const uint64_t *))                   \
    X(push_errors, wgpuDevicePushErrorScope, void, (wgpu_handle, uint32_t))                        \
    X(pop_errors, wgpuDevicePopErrorScope, uint64_t, (wgpu_handle, struct wgpu_callback))          \
    X(create_buffer, wgpuDeviceCreateBuffer, wgpu_handle,                                          \
      (wgpu_handle, const struct wgpu_buffer_descriptor *))                                        \
    X(create_module, wgpuDeviceCreateShaderModule, wgpu_handle,                                    \
      (wgpu_handle, const struct wgpu_labelled *))                                                 \
    X(create_group_layout, wgpuDeviceCreateBindGroupLayout, wgpu_handle,                           \
      (wgpu_handle, const struct wgpu_list_descriptor *))                                          \
    X(create_pipeline_layout, wgpuDeviceCreatePipelineLayout, wgpu_handle,                         \
      (wgpu_handle, const struct wgpu_list_descriptor *))                                          \
    X(create_pipeline, wgpuDeviceCreateComputePipeline, wgpu_handle,                               \
      (wgpu_handle, const struct wgpu_pipeline_descriptor *))                                      \
    X(create_group, wgpuDeviceCreateBindGroup, wgpu_handle,                                        \
      (wgpu_handle, const struct wgpu_group_descriptor *))                                         \
    X(create_queries, wgpuDeviceCreateQuerySet, wgpu_handle,                                       \
      (wgpu_handle, const struct wgpu_query_descriptor *))                                         \
    X(create_encoder, wgpuDeviceCreateCommandEncoder, wgpu_handle,                                 \
      (wgpu_handle, const struct wgpu_labelled *))                                                 \
    X(begin_pass, wgpuCommandEncoderBeginComputePass, wgpu_handle,                                 \
      (wgpu_handle, const struct wgpu_pass_descriptor *))                                          \
    X(clear_buffer, wgpuCommandEncoderClearBuffer, void,                                           \
      (wgpu_handle, wgpu_handle, uint64_t, uint64_t))                                              \
    X(copy_buffer, wgpuCommandEncoderCopyBufferToBuffer, void,                                     \
      (wgpu_handle, wgpu_handle, uint64_t, wgpu_handle, uint64_t, uint64_t))                       \
    X(resolve_queries, wgpuCommandEncoderResolveQuerySet, void,                                    \
      (wgpu_handle, wgpu_handle, uint32_t, uint32_t, wgpu_handle, uint64_t))                       \
    X(finish, wgpuCommandEncoderFinish, wgpu_handle, (wgpu_handle, const struct wgpu_labelled *))  \
    X(use_pipeline, wgpuComputePassEncoderSetPipeline, void, (wgpu_handle, wgpu_handle))           \
    X(use_group, wgpuComputePassEncoderSetBindGroup, void,                                         \
      (wgpu_handle, uint32_t, wgpu_handle, size_t, const uint32_t *))                              \
    X(dispatch, wgpuComputePassEncoderDispatchWorkgroups, void,                                    \
      (wgpu_handle, uint32_t, uint32_t, uint32_t))                                                 \
    X(end_pass, wgpuComputePassEncoderEnd, void, (wgpu_handle))                                    \
    X(write_buffer, wgpuQueueWriteBuffer, void,                                                    \
      (wgpu_handle, wgpu_handle, uint64_t, const void *, size_t))                                  \
    X(submit, wgpuQueueSubmit, void, (wgpu_handle, size_t, const wgpu_handle *))                   \
    X(timestamp_ns, wgpuQueueGetTimestampPeriod, float, (wgpu_handle))                             \
    X(map, wgpuBufferMapAsync, uint64_t,                                                           \
      (wgpu_handle, uint64_t, size_t, size_t, struct wgpu_callback))                               \
    X(mapped, wgpuBufferGetConstMappedRange, const void *, (wgpu_handle, size_t, size_t))          \
    X(unmap, wgpuBufferUnmap, void, (wgpu_handle))                                                 \
    X(buffer_free, wgpuBufferRelease, void, (wgpu_handle))                                         \
    X(group_free, wgpuBindGroupRelease, void, (wgpu_handle))                                       \
    X(group_layout_free, wgpuBindGroupLayoutRelease, void, (wgpu_handle))                          \
    X(pipeline_layout_free, wgpuPipelineLayoutRelease, void, (wgpu_handle))                        \
    X(pipeline_free, wgpuComputePipelineRelease, void, (wgpu_handle))                              \
    X(module_free, wgpuShaderModuleRelease, void, (wgpu_handle))                                   \
    X(encoder_free, wgpuCommandEncoderRelease, void, (wgpu_handle))                                \
    X(commands_free, wgpuCommandBufferRelease, void, (wgpu_handle))                                \
    X(pass_free, wgpuComputePassEncoderRelease, void, (wgpu_handle))

#define WGPU_MEMBER(member, symbol, result, arguments) result(*member) arguments;
struct wgpu {
    void *library;
    WGPU_FUNCTIONS(WGPU_MEMBER)
};
#undef WGPU_MEMBER
