#include "eval/cuda/counters/cupti.h"

#include "eval/cuda/driver/library_find.h"

#include <dlfcn.h>
#include <string.h>

enum { PART_A, PART_R, PART_S };

int cupti_open(struct cupti *cupti, struct err *err)
{
    struct arena *arena = arena_new();
    const char *path = cuda_library_find(arena, "TWAGENT_CUPTI", "libcupti");
    memset(cupti, 0, sizeof *cupti);
    cupti->library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    arena_free(arena);
    if (cupti->library == NULL)
        return err_set(err, ERR_ENVIRONMENT,
                       "no libcupti: the CUDA toolkit has it, or pip install nvidia-cuda-cupti");
    bool complete[] = {[PART_A] = true, [PART_R] = true, [PART_S] = true};
    const struct {
        void *member;
        const char *symbol;
        int part;
    } wanted[] = {
#define CUPTI_LOOK_UP(name, symbol, arguments, part) {&cupti->name, #symbol, PART_##part},
        CUPTI_FUNCTIONS(CUPTI_LOOK_UP)
#undef CUPTI_LOOK_UP
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *symbol = dlsym(cupti->library, wanted[i].symbol);
        complete[wanted[i].part] = complete[wanted[i].part] && symbol != NULL;
        *(void **)wanted[i].member = symbol;
    }
    cupti->has_ranges = complete[PART_R];
    cupti->has_samples = complete[PART_S];
    if (!complete[PART_A])
        return err_set(err, ERR_ENVIRONMENT, "libcupti lacks functions that are needed");
    return 0;
}

const char *cupti_error(const struct cupti *cupti, int result)
{
    const char *text = NULL;
    if (cupti->error_text(result, &text) != 0 || text == NULL)
        return "an unknown error of CUPTI's";
    return text;
}
