/* What every test of this folder includes. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/options/settings.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static inline void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

/* Settings as `command` has them from these arguments alone: "--rounds|3|--final". */
static inline struct settings settings_of(struct arena *arena, uint32_t command, const char *line)
{
    struct settings settings;
    const char *positionals[4];
    char *argv[128], *rest = arena_strdup(arena, line);
    size_t count = 0;
    struct err err = {0};
    int argc = 0;
    while (*line && argc < 128 && (argv[argc] = strsep(&rest, "|")))
        argc++;
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    if (settings_load(arena, command, argc, argv, &settings, positionals, 4, &count, &err))
        fail_msg("%s", err.message);
    return settings;
}
