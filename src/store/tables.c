#include "store/internal.h"

#include "store/record.h"

#include <assert.h>
#include <string.h>

static const char *const names[STORE_TABLES] = {
    [STORE_RUNS] = "runs",
    [STORE_IDEAS] = "ideas",
    [STORE_CANDIDATES] = "candidates",
    [STORE_EVALUATIONS] = "evaluations",
    [STORE_COMPLETIONS] = "completions",
    [STORE_SOURCES] = "sources",
    [STORE_EVENTS] = "events",
    [STORE_FACTS] = "facts",
    [STORE_LESSONS] = "lessons",
    [STORE_SPENDING] = "spending",
    [STORE_PASSAGES] = "passages",
};

const char *store_table_name(enum store_table table)
{
    assert(table >= 0 && table < STORE_TABLES);
    return names[table];
}

unsigned store_table_number(const char *name)
{
    for (unsigned i = 0; i < STORE_TABLES; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return strcmp(name, STORE_SELF_NAME) == 0 ? STORE_TABLE_SELF : STORE_TABLE_UNKNOWN;
}
