#include "cli/find/history.h"

#include "base/mem.h"

#include <string.h>

int history_open(const struct settings *settings, struct store **store, struct err *err)
{
    char *folder = settings->store ? mem_strdup(settings->store) : store_default_folder();
    int failed = store_open(folder, false, true, store, err);
    mem_free(folder);
    return failed;
}

void history_pauses(struct arena *arena, const struct run_record *run, struct report_pause **items,
                    size_t *count)
{
    struct value *root;
    struct err ignored;
    const struct value *list = NULL;
    if (value_parse_json(arena, "pauses", run->pauses, strlen(run->pauses), &root, &ignored) == 0)
        list = value_get(root, "list");
    *count = list && list->kind == VALUE_LIST ? list->count : 0;
    *items = arena_array(arena, *count + 1, sizeof **items);
    for (size_t i = 0; i < *count; i++)
        (*items)[i] =
            (struct report_pause){.since_ms = (uint64_t)value_int(list->items[i], "since_ms", 0),
                                  .until_ms = (uint64_t)value_int(list->items[i], "until_ms", 0),
                                  .reason = value_text(list->items[i], "reason", "")};
}
