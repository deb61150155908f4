/* What this machine has for the backend, and what it lacks. */
#include "eval/cuda/private.h"

#include "base/value.h"
#include "eval/cuda/compile/compile.h"
#include "eval/cuda/driver/library_find.h"
#include "eval/cuda/probe/probe.h"
#include "eval/cuda/sanitize/sanitizer.h"
#include "eval/cuda/triton/triton.h"

#include <stdio.h>
#include <string.h>

enum { GPUS_MOST = 16 };

/* What was found: GPUs that their driver shows, NVRTC. */
static int gpus;
static bool nvrtc;

static void print_gpu(int index, struct arena *arena, const struct lane_facts *lane)
{
    struct value *device;
    if (value_parse_json(arena, "device", lane->device, strlen(lane->device), &device, NULL) != 0)
        return;
    int64_t capability = value_int(value_get(device, "facts"), "compute_capability", 0);
    printf("  GPU %-16d %s, compute capability %d.%d, %.0f GiB, driver %s\n", index,
           value_text(device, "gpu", "?"), (int)(capability / 10), (int)(capability % 10),
           (double)value_int(device, "memory_bytes", 0) / 0x1p30,
           value_text(device, "driver", "unknown"));
}

/* Returns how many there are; says why where there is none. */
static int print_gpus(struct arena *arena)
{
    const int cores[] = {0};
    int count = 0;
    for (; count < GPUS_MOST; count++) {
        struct lane_facts lane = {.gpu_index = count};
        struct err err = {0};
        if (cuda_probe(cores, 1, false, arena, &lane, &err) != 0) {
            if (count == 0)
                printf("  %-20s none: %s\n", "GPU", err.message);
            break;
        }
        print_gpu(count, arena, &lane);
    }
    return count;
}

/* By trying it, since permission is the driver's to give, and a virtual machine's. */
static void print_counters(struct arena *arena)
{
    const char *words = NULL;
    struct err err = {0};
    if (cuda_probe_counters(0, arena, &words, &err) == 0)
        printf("  %-20s %s\n", "hardware counters", words);
    else
        printf("  %-20s none: %s\n", "hardware counters", err.message);
}

/* Where there is no GPU to try it on. */
static void print_cupti(struct arena *arena)
{
    const char *library = cuda_library_find(arena, "TWAGENT_CUPTI", "libcupti");
    if (library != NULL)
        printf("  %-20s not tried, since there is no GPU; libcupti: %s\n", "hardware counters",
               library);
    else
        printf("  %-20s none: no libcupti found; the CUDA toolkit has it\n", "hardware counters");
}

static void print_triton(void)
{
    struct interpreter python;
    struct err err = {0};
    if (triton_find(&python, &err) == 0)
        printf("  %-20s %s, by %s (Python %s)\n", "Triton", python.package, python.path,
               python.python);
    else
        printf("  %-20s none: %s\n", "Triton", err.message);
}

void cuda_describe(void)
{
    ARENA_LOCAL(arena);
    struct cuda_compiler compiler;
    struct err err = {0};
    printf("cuda\n");
    gpus = print_gpus(arena);
    nvrtc = cuda_compiler_find(arena, &compiler, &err) == 0;
    if (nvrtc)
        printf("  %-20s %d.%d, %s\n", "NVRTC", compiler.version_major, compiler.version_minor,
               compiler.library);
    else
        printf("  %-20s not found: %s\n", "NVRTC", err.message);
    print_triton();
    const char *sanitizer = sanitizer_find(arena);
    printf("  %-20s %s\n", "compute-sanitizer",
           sanitizer != NULL ? sanitizer
                             : "not found: finalists go without; the CUDA toolkit has it");
    if (gpus > 0)
        print_counters(arena);
    else
        print_cupti(arena);
}

int cuda_findings(const struct value *answer, struct buf *out)
{
    (void)answer;
    if (gpus == 0)
        buf_add_text(
            out, "  MISSING  a GPU with its driver, to run candidates: on Debian apt-get install "
                 "nvidia-driver;\n           in a container the host's own, as by docker run "
                 "--gpus all\n");
    if (!nvrtc)
        buf_add_text(out,
                     "  MISSING  NVRTC, to compile candidates: the CUDA toolkit, or pip install\n"
                     "           nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt\n");
    return (gpus == 0) + !nvrtc;
}
