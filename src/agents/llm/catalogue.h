/* agents/llm/catalogue: the entries of models.yaml, read and checked. Inside agents/llm/model.c and
 * agents/llm/catalogue.c only; agents/llm/model.h says what a person writes. */
#pragma once

#include "agents/llm/model.h"

#include <stdbool.h>

struct entry {
    struct model model; /* base_url NULL: not said; key_variable NULL with keyless: `key: none` */
    bool keyless;
};

struct catalogue {
    struct entry *entries; /* [count], in the files' order, names unique */
    const char **names;    /* [count + 1], NULL-terminated */
    size_t count;
};

/* Reads one file over what is there. ERR_USAGE with "file:line: expected ...". */
int catalogue_read(struct arena *arena, const char *path, const char *text, size_t length,
                   struct catalogue *catalogue, struct err *err) MUST_USE;

/* Exactly this name; NULL where there is none. */
const struct entry *catalogue_find(const struct catalogue *catalogue, const char *name);
