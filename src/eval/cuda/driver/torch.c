#include "eval/cuda/driver/torch.h"

#include <stdlib.h>
#include <string.h>

/* The lane's GPU and no other, as its runners count them: where the user shows only some, one of
 * those. */
static const char *const *environment(struct arena *arena, int index)
{
    const char *shown = getenv("CUDA_VISIBLE_DEVICES"), *rest = shown;
    const char **env = arena_array(arena, 4, sizeof *env);
    for (int i = 0; rest != NULL && i < index; i++)
        rest = (rest = strchr(rest, ',')) != NULL ? rest + 1 : NULL;
    bool own = rest != NULL && *shown != '\0';
    env[0] = "LC_ALL=C.UTF-8";
    env[1] = own ? arena_printf(arena, "CUDA_VISIBLE_DEVICES=%.*s", (int)strcspn(rest, ","), rest)
                 : arena_printf(arena, "CUDA_VISIBLE_DEVICES=%d", index);
    env[2] = "CUDA_DEVICE_ORDER=PCI_BUS_ID";
    env[3] = NULL;
    return env;
}

static const char *const nodes[] = {"/dev/nvidiactl",
                                    "/dev/nvidia-uvm",
                                    "/dev/nvidia0",
                                    "/dev/nvidia1",
                                    "/dev/nvidia2",
                                    "/dev/nvidia3",
                                    "/dev/nvidia4",
                                    "/dev/nvidia5",
                                    "/dev/nvidia6",
                                    "/dev/nvidia7",
                                    NULL};

const struct torch_device torch_cuda = {.name = "cuda", .nodes = nodes, .env = environment};
const struct torch_device torch_cuda_or_cpu = {
    .name = "cuda", .fact = "nvidia", .or_cpu = true, .nodes = nodes, .env = environment};
