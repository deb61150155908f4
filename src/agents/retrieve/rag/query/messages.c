#include "agents/retrieve/rag/query/messages.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* cudaGetErrorString()'s of what kernels and their launches meet: with "cudaError" before the
 * runtime's name, "CUDA_ERROR_" before the driver's. */
static const struct {
    const char *text, *runtime, *driver;
} known[] = {
    {"out of memory", "MemoryAllocation", "OUT_OF_MEMORY"},
    {"initialization error", "InitializationError", "NOT_INITIALIZED"},
    {"driver shutting down", "CudartUnloading", "DEINITIALIZED"},
    {"invalid configuration argument", "InvalidConfiguration", NULL},
    {"invalid device symbol", "InvalidSymbol", NULL},
    {"incorrect use of __syncthreads()", "SynchronizationError", NULL},
    {"CUDA driver is a stub library", "StubLibrary", "STUB_LIBRARY"},
    {"CUDA driver version is insufficient for CUDA runtime version", "InsufficientDriver", NULL},
    {"CUDA-capable device(s) is/are busy or unavailable", "DevicesUnavailable",
     "DEVICE_UNAVAILABLE"},
    {"unspecified launch failure in prior launch", "PriorLaunchFailure", NULL},
    {"launch would exceed maximum depth of nested launches", "LaunchMaxDepthExceeded", NULL},
    {"invalid device function", "InvalidDeviceFunction", NULL},
    {"no CUDA-capable device is detected", "NoDevice", "NO_DEVICE"},
    {"invalid device ordinal", "InvalidDevice", "INVALID_DEVICE"},
    {"device kernel image is invalid", "InvalidKernelImage", "INVALID_IMAGE"},
    {"invalid device context", "DeviceUninitialized", "INVALID_CONTEXT"},
    {"mapping of buffer object failed", "MapBufferObjectFailed", "MAP_FAILED"},
    {"array is mapped", "ArrayIsMapped", "ARRAY_IS_MAPPED"},
    {"resource already mapped", "AlreadyMapped", "ALREADY_MAPPED"},
    {"no kernel image is available for execution on the device", "NoKernelImageForDevice",
     "NO_BINARY_FOR_GPU"},
    {"resource already acquired", "AlreadyAcquired", "ALREADY_ACQUIRED"},
    {"resource not mapped", "NotMapped", "NOT_MAPPED"},
    {"resource not mapped as array", "NotMappedAsArray", "NOT_MAPPED_AS_ARRAY"},
    {"resource not mapped as pointer", "NotMappedAsPointer", "NOT_MAPPED_AS_POINTER"},
    {"uncorrectable ECC error encountered", "ECCUncorrectable", "ECC_UNCORRECTABLE"},
    {"limit is not supported on this architecture", "UnsupportedLimit", "UNSUPPORTED_LIMIT"},
    {"exclusive-thread device already in use by a different thread", "DeviceAlreadyInUse",
     "CONTEXT_ALREADY_IN_USE"},
    {"peer access is not supported between these two devices", "PeerAccessUnsupported",
     "PEER_ACCESS_UNSUPPORTED"},
    {"a PTX JIT compilation failed", "InvalidPtx", "INVALID_PTX"},
    {"uncorrectable NVLink error detected during the execution", "NvlinkUncorrectable",
     "NVLINK_UNCORRECTABLE"},
    {"PTX JIT compiler library not found", "JitCompilerNotFound", "JIT_COMPILER_NOT_FOUND"},
    {"the provided PTX was compiled with an unsupported toolchain", "UnsupportedPtxVersion",
     "UNSUPPORTED_PTX_VERSION"},
    {"PTX JIT compilation was disabled", "JitCompilationDisabled", "JIT_COMPILATION_DISABLED"},
    {"the provided PTX contains unsupported call to cudaDeviceSynchronize",
     "UnsupportedDevSideSync", "UNSUPPORTED_DEVSIDE_SYNC"},
    {"shared object symbol not found", "SharedObjectSymbolNotFound",
     "SHARED_OBJECT_SYMBOL_NOT_FOUND"},
    {"shared object initialization failed", "SharedObjectInitFailed", "SHARED_OBJECT_INIT_FAILED"},
    {"invalid resource handle", "InvalidResourceHandle", "INVALID_HANDLE"},
    {"named symbol not found", "SymbolNotFound", "NOT_FOUND"},
    {"device not ready", "NotReady", "NOT_READY"},
    {"an illegal memory access was encountered", "IllegalAddress", "ILLEGAL_ADDRESS"},
    {"too many resources requested for launch", "LaunchOutOfResources", "LAUNCH_OUT_OF_RESOURCES"},
    {"the launch timed out and was terminated", "LaunchTimeout", "LAUNCH_TIMEOUT"},
    {"peer access is already enabled", "PeerAccessAlreadyEnabled", "PEER_ACCESS_ALREADY_ENABLED"},
    {"peer access has not been enabled", "PeerAccessNotEnabled", "PEER_ACCESS_NOT_ENABLED"},
    {"cannot set while device is active in this process", "SetOnActiveProcess",
     "PRIMARY_CONTEXT_ACTIVE"},
    {"context is destroyed", "ContextIsDestroyed", "CONTEXT_IS_DESTROYED"},
    {"device-side assert triggered", "Assert", "ASSERT"},
    {"peer mapping resources exhausted", "TooManyPeers", "TOO_MANY_PEERS"},
    {"part or all of the requested memory range is already mapped", "HostMemoryAlreadyRegistered",
     "HOST_MEMORY_ALREADY_REGISTERED"},
    {"pointer does not correspond to a registered memory region", "HostMemoryNotRegistered",
     "HOST_MEMORY_NOT_REGISTERED"},
    {"hardware stack error", "HardwareStackError", "HARDWARE_STACK_ERROR"},
    {"an illegal instruction was encountered", "IllegalInstruction", "ILLEGAL_INSTRUCTION"},
    {"misaligned address", "MisalignedAddress", "MISALIGNED_ADDRESS"},
    {"operation not supported on global/shared address space", "InvalidAddressSpace",
     "INVALID_ADDRESS_SPACE"},
    {"invalid program counter", "InvalidPc", "INVALID_PC"},
    {"unspecified launch failure", "LaunchFailure", "LAUNCH_FAILED"},
    {"too many blocks in cooperative launch", "CooperativeLaunchTooLarge",
     "COOPERATIVE_LAUNCH_TOO_LARGE"},
    {"tensor memory not completely freed", "TensorMemoryLeak", "TENSOR_MEMORY_LEAK"},
    {"system not yet initialized", "SystemNotReady", "SYSTEM_NOT_READY"},
    {"system has unsupported display driver / cuda driver combination", "SystemDriverMismatch",
     "SYSTEM_DRIVER_MISMATCH"},
    {"forward compatibility was attempted on non supported HW", "CompatNotSupportedOnDevice",
     "COMPAT_NOT_SUPPORTED_ON_DEVICE"},
    {"MPS client failed to connect to the MPS control daemon or the MPS server",
     "MpsConnectionFailed", "MPS_CONNECTION_FAILED"},
    {"the remote procedural call between the MPS server and the MPS client failed", "MpsRpcFailure",
     "MPS_RPC_FAILURE"},
    {"MPS server is not ready to accept new MPS client requests", "MpsServerNotReady",
     "MPS_SERVER_NOT_READY"},
    {"the hardware resources required to create MPS client have been exhausted",
     "MpsMaxClientsReached", "MPS_MAX_CLIENTS_REACHED"},
    {"the hardware resources required to support device connections have been exhausted",
     "MpsMaxConnectionsReached", "MPS_MAX_CONNECTIONS_REACHED"},
    {"operation not permitted when stream is capturing", "StreamCaptureUnsupported",
     "STREAM_CAPTURE_UNSUPPORTED"},
    {"operation failed due to a previous error during capture", "StreamCaptureInvalidated",
     "STREAM_CAPTURE_INVALIDATED"},
    {"operation would result in a merge of separate capture sequences", "StreamCaptureMerge",
     "STREAM_CAPTURE_MERGE"},
    {"capture was not ended in the same stream as it began", "StreamCaptureUnmatched",
     "STREAM_CAPTURE_UNMATCHED"},
    {"capturing stream has unjoined work", "StreamCaptureUnjoined", "STREAM_CAPTURE_UNJOINED"},
    {"dependency created on uncaptured work in another stream", "StreamCaptureIsolation",
     "STREAM_CAPTURE_ISOLATION"},
    {"operation would make the legacy stream depend on a capturing blocking stream",
     "StreamCaptureImplicit", "STREAM_CAPTURE_IMPLICIT"},
    {"operation not permitted on an event last recorded in a capturing stream", "CapturedEvent",
     "CAPTURED_EVENT"},
    {"attempt to terminate a thread-local capture sequence from another thread",
     "StreamCaptureWrongThread", "STREAM_CAPTURE_WRONG_THREAD"},
    {"wait operation timed out", "Timeout", "TIMEOUT"},
    {"the graph update was not performed because it included changes which violated constraints "
     "specific to instantiated graph update",
     "GraphExecUpdateFailure", "GRAPH_EXEC_UPDATE_FAILURE"},
    {"a kernel launch error has occurred due to cluster misconfiguration", "InvalidClusterSize",
     "INVALID_CLUSTER_SIZE"},
};

enum { KNOWN = sizeof known / sizeof known[0], WORDS_MOST = 24 };

struct message {
    const char *terms[WORDS_MOST];
    size_t count;
    const char *names[2];
};

struct messages {
    struct arena *arena;
    struct message items[KNOWN];
};

struct reading {
    struct arena *arena;
    struct message *message;
};

static void take(void *context, const char *term, size_t length, enum word_kind kind)
{
    struct reading *reading = context;
    struct message *message = reading->message;
    if ((kind == WORD_PLAIN || kind == WORD_PART) && message->count < WORDS_MOST)
        message->terms[message->count++] = arena_strndup(reading->arena, term, length);
}

/* As words_each() gives an identifier whole: in lower case. */
static const char *name_of(struct arena *arena, const char *prefix, const char *name)
{
    BUF_LOCAL(text, TERM_MAX);
    buf_add_text(&text, prefix);
    buf_add_text(&text, name);
    char *lower = arena_strndup(arena, buf_text(&text), text.length);
    for (char *at = lower; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return lower;
}

struct messages *messages_new(struct words *words)
{
    struct messages *messages = MEM_NEW(struct messages);
    messages->arena = arena_new();
    for (size_t i = 0; i < KNOWN; i++) {
        struct message *message = &messages->items[i];
        struct reading reading = {messages->arena, message};
        words_each(words, known[i].text, strlen(known[i].text), take, &reading);
        message->names[0] = name_of(messages->arena, "cudaError", known[i].runtime);
        if (known[i].driver != NULL)
            message->names[1] = name_of(messages->arena, "CUDA_ERROR_", known[i].driver);
    }
    return messages;
}

void messages_free(struct messages *messages)
{
    if (messages == NULL)
        return;
    arena_free(messages->arena);
    mem_free(messages);
}

static bool stands_at(const struct message *message, const char *const *terms)
{
    for (size_t i = 0; i < message->count; i++)
        if (strcmp(message->terms[i], terms[i]) != 0)
            return false;
    return true;
}

void messages_each(const struct messages *messages, const char *const *terms, size_t count,
                   word_visit *visit, void *context)
{
    const struct message *best = NULL;
    for (size_t i = 0; i < KNOWN; i++) {
        const struct message *message = &messages->items[i];
        for (size_t at = 0; at + message->count <= count; at++)
            if ((best == NULL || message->count > best->count) && stands_at(message, terms + at))
                best = message;
    }
    for (size_t i = 0; best != NULL && i < 2; i++)
        if (best->names[i] != NULL)
            visit(context, best->names[i], strlen(best->names[i]), WORD_WHOLE);
}
