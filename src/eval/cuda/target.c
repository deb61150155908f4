/* What is written for NVIDIA GPUs: device code of CUDA C++ with a launch plan. */
#include "eval/cuda/target.h"

#include "base/mem.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NVRTC's and ptxas's: the architecture, line information and paths are the lane's own.
 */
static const char *const flags[] = {"-use_fast_math",
                                    "--use_fast_math",
                                    "-ftz=true",
                                    "-ftz=false",
                                    "-prec-div=true",
                                    "-prec-div=false",
                                    "-prec-sqrt=true",
                                    "-prec-sqrt=false",
                                    "-fmad=true",
                                    "-fmad=false",
                                    "-restrict",
                                    "-extra-device-vectorization",
                                    "-std=c++17",
                                    "-std=c++20",
                                    "--ptxas-options=-O1",
                                    "--ptxas-options=-O2",
                                    "--ptxas-options=-O3",
                                    "--ptxas-options=-dlcm=ca",
                                    "--ptxas-options=-dlcm=cg",
                                    "--ptxas-options=--allow-expensive-optimizations=true",
                                    "--ptxas-options=--allow-expensive-optimizations=false",
                                    NULL};

static bool allows(const char *flag)
{
    static const char registers[] = "-maxrregcount=";
    for (size_t i = 0; flags[i] != NULL; i++)
        if (strcmp(flag, flags[i]) == 0)
            return true;
    if (strncmp(flag, registers, sizeof registers - 1) != 0)
        return false;
    size_t digits = strspn(flag + sizeof registers - 1, "0123456789");
    return digits >= 2 && digits <= 3 && flag[sizeof registers - 1 + digits] == '\0';
}

/* What the kernel's driver says of the first line of a file; "" where there is none. */
static void driver_line(const char *path, char line[160])
{
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, 160, file))
        line[0] = '\0';
    if (file)
        fclose(file);
    line[strcspn(line, "\n")] = '\0';
}

/* One machine's ceilings are measured once: of a driver and its GPUs. */
static char *ceilings_key(const char *cores, const char *devices)
{
    char version[160], model[160] = "";
    glob_t found;
    (void)cores;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    driver_line("/proc/driver/nvidia/version", version);
    if (glob("/proc/driver/nvidia/gpus/*/information", 0, NULL, &found) == 0) {
        driver_line(found.gl_pathv[0], model);
        globfree(&found);
    }
    char *key = mem_alloc(500);
    snprintf(key, 500, "machine/ceilings/cuda/%.150s/%.150s/%.40s/%.40s", version, model,
             visible ? visible : "", devices ? devices : "0");
    return key;
}

static const char *const suffixes[] = {".cu", NULL};
static const char *const python_suffixes[] = {".py", NULL};

#define FACTS                                                                                      \
    "compute_capability sm_count warp_size l2_bytes shared_bytes_optin sm_shared_bytes "           \
    "max_threads_per_sm registers_per_sm"

const struct language language_cuda = {
    .name = "cuda",
    .suffixes = suffixes,
    .open = "/*---",
    .close = "---*/",
    .comment_end = "*/",
    .entry = "__global__",
    .plan = true,
    .allows = allows,
    .facts = FACTS,
};

const struct language language_triton = {
    .name = "triton",
    .suffixes = python_suffixes,
    .open = "\"\"\"---",
    .close = "---\"\"\"",
    .comment_end = "\"\"\"",
    .sign = "@triton.jit",
    .entry = "@triton.jit",
    .own = "triton",
    .plan = true,
    .ambiguous = true,
    .fixes_block = true,
    .interpreted = true,
    .facts = FACTS,
};

static const struct language *const languages[] = {&language_cuda, &language_triton, NULL};

const struct target target_cuda = {.name = "cuda",
                                   .title = "NVIDIA GPU",
                                   .languages = languages,
                                   .ceilings_key = ceilings_key,
                                   .held = 32};
