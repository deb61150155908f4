#include "process/toolchain.h"

#include "base/file.h"
#include "base/mem.h"
#include "process/spawn.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOOLS = 16, ARGS = 64 };

static struct {
    char *name, *path;
} found[TOOLS];

static bool is_program(const char *folder, size_t length, const char *name, char path[512])
{
    int written = snprintf(path, 512, "%.*s/%s", (int)length, folder, name);
    return length > 0 && written > 0 && written < 512 && access(path, X_OK) == 0;
}

/* /usr/bin first: what stands before it on a PATH may be a wrapper that keeps a cache somewhere. */
const char *tool_find(const char *name)
{
    char path[512];
    size_t place = 0;
    for (; place < TOOLS && found[place].name != NULL; place++)
        if (strcmp(found[place].name, name) == 0)
            return found[place].path;
    bool there =
        is_program("/usr/bin", 8, name, path) || is_program("/usr/local/bin", 14, name, path);
    const char *list = getenv("PATH");
    for (const char *at = list != NULL ? list : ""; !there && *at != '\0';) {
        size_t length = strcspn(at, ":");
        there = at[0] == '/' && is_program(at, length, name, path);
        at += length + (at[length] == ':');
    }
    if (place == TOOLS)
        return NULL;
    found[place].name = mem_strdup(name);
    found[place].path = there ? mem_strdup(path) : NULL;
    return found[place].path;
}

/* PREFIX of PREFIX/bin/python3, links followed; NULL where there is no Python. */
static const char *python_prefix(struct arena *arena)
{
    const char *python = tool_find("python3");
    char *real = python != NULL ? realpath(python, NULL) : NULL;
    char *bin = real != NULL ? strstr(real, "/bin/") : NULL;
    const char *prefix = bin != NULL ? arena_strndup(arena, real, (size_t)(bin - real)) : NULL;
    free(real);
    return prefix;
}

const char *tool_newest(struct arena *arena, const char *pattern)
{
    glob_t matches;
    const char *path = NULL;
    if (glob(pattern, 0, NULL, &matches) == 0)
        for (size_t i = matches.gl_pathc; i > 0 && path == NULL; i--)
            if (strstr(matches.gl_pathv[i - 1], ".alt.") == NULL)
                path = arena_strdup(arena, matches.gl_pathv[i - 1]);
    globfree(&matches);
    return path;
}

const char *tool_wheel(struct arena *arena, const char *tail)
{
    const char *home = getenv("HOME"), *path = NULL;
    const char *local = home != NULL ? arena_printf(arena, "%s/.local", home) : NULL;
    const char *const prefixes[] = {getenv("VIRTUAL_ENV"), getenv("CONDA_PREFIX"),
                                    python_prefix(arena),  local,
                                    "/usr/local",          "/usr"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0] && path == NULL; i++)
        if (prefixes[i] != NULL)
            path = tool_newest(
                arena, arena_printf(arena, "%s/lib/python3*/*-packages/%s", prefixes[i], tail));
    return path;
}

const char *tool_prefix(const char *path)
{
    static char prefix[PATH_MAX];
    char real[PATH_MAX];
    if (realpath(path, real) == NULL || strncmp(real, "/usr/", 5) == 0)
        return NULL;
    for (int i = 0; i < 2; i++) { /* .../bin/gcc */
        char *slash = strrchr(real, '/');
        if (slash == NULL || slash == real)
            return NULL;
        *slash = '\0';
    }
    memcpy(prefix, real, sizeof prefix);
    return prefix;
}

static void sandboxed(const struct tool *tool, const char *all[ARGS])
{
    size_t count = 0;
    const char *prefix = tool_prefix(tool->argv[0]);
    all[count++] = file_program_path();
    all[count++] = "sandbox";
    all[count++] = "--profile";
    all[count++] = tool->profile != NULL ? tool->profile : "tool";
    if (prefix != NULL) {
        all[count++] = "--read";
        all[count++] = prefix;
    }
    for (size_t i = 0; tool->reads != NULL && tool->reads[i] != NULL && i < 8; i++) {
        all[count++] = "--read";
        all[count++] = tool->reads[i];
    }
    if (tool->write != NULL) {
        all[count++] = "--write";
        all[count++] = tool->write;
    }
    all[count++] = "--";
    for (size_t i = 0; tool->argv[i] != NULL && count < ARGS - 1; i++)
        all[count++] = tool->argv[i];
    all[count] = NULL;
}

int tool_run(const struct tool *tool, struct buf *out, struct buf *errors, struct err *err)
{
    static const char *const plain[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
    const char *all[ARGS];
    sandboxed(tool, all);
    const struct spawn_spec spec = {.argv = all,
                                    .name = tool->argv[0],
                                    .env = tool->env != NULL ? tool->env : plain,
                                    .fds = tool->fds,
                                    .fd_count = tool->fd_count,
                                    .threads_max = tool->threads_max};
    return spawn_run(&spec, tool->timeout_ms, tool->exit_code, out, errors, err) != 0 ? -1 : 0;
}
