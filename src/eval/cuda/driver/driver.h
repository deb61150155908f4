/* eval/cuda/driver: libcuda.so.1 behind one table, opened at run time. A process that opens it
 * holds the driver's threads and descriptors from then on: runners and probes do, the worker and
 * the agent never. */
#pragma once

#include "base/err.h"
#include "eval/cuda/driver/api.h"

/* X(name in the table, exported symbol, arguments) */
/* clang-format off */
#define DRIVER_FUNCTIONS(X) \
    X(init, cuInit, (unsigned flags)) \
    X(version, cuDriverGetVersion, (int *version)) \
    X(device_count, cuDeviceGetCount, (int *count)) \
    X(device_get, cuDeviceGet, (cu_device *device, int ordinal)) \
    X(device_name, cuDeviceGetName, (char *name, int length, cu_device device)) \
    X(device_attribute, cuDeviceGetAttribute, (int *value, int attribute, cu_device device)) \
    X(device_memory, cuDeviceTotalMem_v2, (size_t *bytes, cu_device device)) \
    X(device_pci, cuDeviceGetPCIBusId, (char *text, int length, cu_device device)) \
    X(context_retain, cuDevicePrimaryCtxRetain, (cu_context *context, cu_device device)) \
    X(context_use, cuCtxSetCurrent, (cu_context context)) \
    X(reset_persisting, cuCtxResetPersistingL2Cache, (void)) \
    X(allocate, cuMemAlloc_v2, (cu_pointer *pointer, size_t bytes)) \
    X(release, cuMemFree_v2, (cu_pointer pointer)) \
    X(host_register, cuMemHostRegister_v2, (void *memory, size_t bytes, unsigned flags)) \
    X(host_pointer, cuMemHostGetDevicePointer_v2, (cu_pointer *pointer, void *memory, unsigned flags)) \
    X(upload, cuMemcpyHtoDAsync_v2, (cu_pointer to, const void *from, size_t bytes, cu_stream stream)) \
    X(download, cuMemcpyDtoHAsync_v2, (void *to, cu_pointer from, size_t bytes, cu_stream stream)) \
    X(copy, cuMemcpyDtoDAsync_v2, (cu_pointer to, cu_pointer from, size_t bytes, cu_stream stream)) \
    X(fill, cuMemsetD8Async, (cu_pointer to, unsigned char byte, size_t count, cu_stream stream)) \
    X(stream_create, cuStreamCreate, (cu_stream *stream, unsigned flags)) \
    X(stream_wait, cuStreamSynchronize, (cu_stream stream)) \
    X(capture_begin, cuStreamBeginCapture_v2, (cu_stream stream, int mode)) \
    X(capture_end, cuStreamEndCapture, (cu_stream stream, cu_graph *graph)) \
    X(graph_instantiate, cuGraphInstantiateWithFlags, (cu_graph_exec *exec, cu_graph graph, unsigned long long flags)) \
    X(graph_upload, cuGraphUpload, (cu_graph_exec exec, cu_stream stream)) \
    X(graph_launch, cuGraphLaunch, (cu_graph_exec exec, cu_stream stream)) \
    X(graph_destroy, cuGraphDestroy, (cu_graph graph)) \
    X(graph_exec_destroy, cuGraphExecDestroy, (cu_graph_exec exec)) \
    X(event_create, cuEventCreate, (cu_event *event, unsigned flags)) \
    X(event_record, cuEventRecord, (cu_event event, cu_stream stream)) \
    X(event_elapsed, cuEventElapsedTime, (float *milliseconds, cu_event start, cu_event end)) \
    X(module_load, cuModuleLoadData, (cu_module *module, const void *image)) \
    X(module_unload, cuModuleUnload, (cu_module module)) \
    X(module_function, cuModuleGetFunction, (cu_function *function, cu_module module, const char *name)) \
    X(function_get, cuFuncGetAttribute, (int *value, int attribute, cu_function function)) \
    X(function_set, cuFuncSetAttribute, (cu_function function, int attribute, int value)) \
    X(parameter, cuFuncGetParamInfo, (cu_function function, size_t index, size_t *offset, size_t *bytes)) \
    X(launch, cuLaunchKernelEx, (const struct cu_launch_config *config, cu_function function, void **arguments, void **extra)) \
    X(tensor_map, cuTensorMapEncodeTiled, (struct cu_tensor_map *map, int type, uint32_t rank, void *address, const uint64_t *extents, const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides, int interleave, int swizzle, int promotion, int fill)) \
    X(error_name, cuGetErrorName, (cu_result result, const char **name)) \
    X(error_text, cuGetErrorString, (cu_result result, const char **text))
/* clang-format on */

struct driver {
    void *library;
#define DRIVER_MEMBER(name, symbol, arguments) cu_result(*name) arguments;
    DRIVER_FUNCTIONS(DRIVER_MEMBER)
#undef DRIVER_MEMBER
};

/* $TWAGENT_CUDA_DRIVER, or libcuda.so.1 as the loader finds it. tensor_map and parameter may be
 * missing (drivers before 12.0 and 12.4). ERR_ENVIRONMENT, in words that say what to install. */
int driver_open(struct driver *driver, struct err *err) MUST_USE;

/* "CUDA_ERROR_ILLEGAL_ADDRESS"; static text of the driver's. */
const char *driver_error(const struct driver *driver, cu_result result);
