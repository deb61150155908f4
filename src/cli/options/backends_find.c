#include "cli/options/backends.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { BACKENDS_MOST = 8 };

char backends_choices[64];

void backends_begin(void)
{
    static const struct target *targets[BACKENDS_MOST + 1]; /* ends with NULL */
    size_t length = 0;
    for (size_t i = 0; backends[i]; i++) {
        assert(i < BACKENDS_MOST);
        targets[i] = backends[i]->target;
        length += (size_t)snprintf(backends_choices + length, sizeof backends_choices - length,
                                   "%s%s", i ? "|" : "", targets[i]->name);
        assert(length < sizeof backends_choices);
    }
    targets_use(targets);
}

const char *backends_of_language(const char *language)
{
    const struct language *chosen[TARGET_FOLDERS_MAX];
    for (size_t i = 0; backends[i]; i++)
        if (target_choose(backends[i]->target, language, chosen) > 0)
            return backends[i]->target->name;
    return NULL;
}

const struct backend *backends_find(const char *name)
{
    for (size_t i = 0; backends[i]; i++)
        if (strcmp(backends[i]->target->name, name) == 0)
            return backends[i];
    return NULL;
}
