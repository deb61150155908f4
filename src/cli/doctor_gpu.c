#include "cli/doctor_gpu.h"

#include "base/value.h"
#include "eval/cpu/toolchain.h"
#include "eval/cuda/compile.h"
#include "eval/cuda/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GPUS_MOST = 16 };

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

/* NVIDIA's kernel module says who may read hardware counters. */
static const char *counters_words(void)
{
    char line[128];
    int admin_only = -1;
    FILE *file = fopen("/proc/driver/nvidia/params", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "RmProfilingAdminOnly: ", 22) == 0)
            admin_only = (int)strtol(line + 22, NULL, 10);
    if (file != NULL)
        fclose(file);
    if (admin_only < 0)
        return "not known: the driver does not say who may read them";
    if (admin_only == 0)
        return "permitted";
    return geteuid() == 0 ? "permitted, to root alone"
                          : "not permitted: NVreg_RestrictProfilingToAdminUsers=0, or root";
}

void doctor_gpu(void)
{
    struct arena *arena = arena_new();
    struct cuda_compiler compiler;
    struct err err = {0};
    printf("cuda\n");
    int count = print_gpus(arena);
    if (cuda_compiler_find(arena, &compiler, &err) == 0)
        printf("  %-20s %d.%d, %s\n", "NVRTC", compiler.version_major, compiler.version_minor,
               compiler.library);
    else
        printf("  %-20s not found: %s\n", "NVRTC", err.message);
    const char *sanitizer = tool_find("compute-sanitizer");
    printf("  %-20s %s\n", "compute-sanitizer", sanitizer != NULL ? sanitizer : "not found");
    if (count > 0)
        printf("  %-20s %s\n", "hardware counters", counters_words());
    arena_free(arena);
}
