#include "cli/options/devices.h"

#include "cli/options/backends.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX_MOST = 1023, DIGITS_MOST = 4 };

/* The number at `text`, up to a comma or the end; -1: none. */
static int index_at(const char *text)
{
    size_t digits = 0;
    while (isdigit((unsigned char)text[digits]))
        digits++;
    if (digits == 0 || digits > DIGITS_MOST || (text[digits] != '\0' && text[digits] != ','))
        return -1;
    long number = strtol(text, NULL, 10);
    return number <= INDEX_MOST ? (int)number : -1;
}

int devices_check(const char *text, struct err *err)
{
    bool seen[INDEX_MOST + 1] = {false};
    if (!text || strcmp(text, "all") == 0)
        return 0;
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        int index = index_at(at);
        if (index < 0)
            return err_set(err, ERR_USAGE,
                           "--devices \"%s\": expected the numbers of GPUs with commas between, as "
                           "in 0 or 0,2, or all",
                           text);
        if (seen[index])
            return err_set(err, ERR_USAGE,
                           "--devices %s: expected each GPU once, not %d again (a lane has its GPU "
                           "to itself)",
                           text, index);
        seen[index] = true;
    }
    return 0;
}

int devices_first(const char *text)
{
    struct err ignored;
    if (devices_check(text, &ignored))
        return -1;
    return text && *text != 'a' ? index_at(text) : 0;
}

int devices_resolve(struct arena *arena, const char *backend, const char *launcher,
                    const char **devices, struct err *err)
{
    int count = 0;
    const struct backend *chosen = backend ? backends_find(backend) : NULL;
    if (!chosen || !chosen->count)
        *devices = NULL;
    if (!*devices || strcmp(*devices, "all") != 0)
        return 0;
    if (launcher)
        return err_set(err, ERR_USAGE,
                       "--devices all counts the GPUs of this machine, and --launcher %s leads to "
                       "another: name them, as in --devices 0,1",
                       launcher);
    if (chosen->count(arena, &count, err))
        return err_wrap(err, "--devices all");
    *devices = "0";
    for (int i = 1; i < count; i++)
        *devices = arena_printf(arena, "%s,%d", *devices, i);
    return 0;
}
