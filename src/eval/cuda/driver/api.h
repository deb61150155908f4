/* eval/cuda/driver/api: the few types, numbers and prototypes of the CUDA driver API that are used
 * here, as its binary interface has them (CUDA 11.8 to 13), so that no CUDA header is needed to
 * build. Only processes that are meant to hold a context include this. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int cu_result; /* 0: success */
typedef int cu_device;
typedef uint64_t cu_pointer;
typedef struct cu_context_ *cu_context;
typedef struct cu_module_ *cu_module;
typedef struct cu_function_ *cu_function;
typedef struct cu_stream_ *cu_stream;
typedef struct cu_event_ *cu_event;
typedef struct cu_graph_ *cu_graph;
typedef struct cu_graph_exec_ *cu_graph_exec;

enum { CU_OUT_OF_MEMORY = 2, CU_NOT_FOUND = 500 };

enum { /* attributes of a device */
       CU_WARP_SIZE = 10,
       CU_SM_COUNT = 16,
       CU_L2_BYTES = 38,
       CU_MAX_THREADS_PER_SM = 39,
       CU_CAPABILITY_MAJOR = 75,
       CU_CAPABILITY_MINOR = 76,
       CU_SHARED_BYTES_PER_SM = 81,
       CU_REGISTERS_PER_SM = 82,
       CU_SHARED_BYTES_OPTIN = 97,
       CU_READ_ONLY_REGISTER = 113
};

enum { /* attributes of a function */
       CU_FUNCTION_THREADS_PER_BLOCK = 0,
       CU_FUNCTION_LOCAL_BYTES = 3,
       CU_FUNCTION_SHARED_BYTES = 1,
       CU_FUNCTION_MAX_DYNAMIC_SHARED = 8,
       CU_FUNCTION_NON_PORTABLE_CLUSTER = 14
};

enum { CU_REGISTER_DEVICE_MAPPED = 2, CU_REGISTER_READ_ONLY = 8 };
enum { CU_CAPTURE_THREAD_LOCAL = 1 };
enum { CU_LAUNCH_COOPERATIVE = 2, CU_LAUNCH_CLUSTER = 4, CU_LAUNCH_ATTRIBUTES = 2 };

struct cu_launch_attribute {
    int id;
    char pad[4];
    union {
        char bytes[64];
        int cooperative;
        uint32_t cluster[3];
    } value;
};

struct cu_launch_config {
    uint32_t grid[3], block[3], shared_bytes;
    cu_stream stream;
    struct cu_launch_attribute *attributes;
    uint32_t attribute_count;
};

struct cu_tensor_map { /* opaque to all but the hardware */
    _Alignas(64) uint64_t words[16];
};

/* CUtensorMapDataType, by what it holds */
enum { CU_MAP_INT32 = 3, CU_MAP_FLOAT16 = 6, CU_MAP_FLOAT32, CU_MAP_FLOAT64, CU_MAP_BFLOAT16 };
enum { CU_MAP_TFLOAT32 = 11 };
