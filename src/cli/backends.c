#include "cli/backends.h"

#include "eval/cpu/cpu.h"
#include "eval/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

static const struct backend *const backends[] = {
    &backend_cpu,
    &backend_cuda,
};

enum { COUNT = sizeof backends / sizeof backends[0] };

char backends_choices[64];

void backends_begin(void)
{
    static const struct target *targets[COUNT + 1];
    struct buf names;
    buf_init(&names, sizeof backends_choices - 1);
    for (size_t i = 0; i < COUNT; i++) {
        targets[i] = backends[i]->target;
        buf_addf(&names, "%s%s", i ? "|" : "", targets[i]->name);
    }
    snprintf(backends_choices, sizeof backends_choices, "%s", buf_text(&names));
    buf_free(&names);
    targets_use(targets); /* the table ends with NULL */
}

const struct backend *backends_find(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(backends[i]->target->name, name) == 0)
            return backends[i];
    return NULL;
}
