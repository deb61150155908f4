/* The keys that name files: reference, baselines, baseline. */
#include "eval/problem/read.h"

#include "base/file.h"
#include "base/mem.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* The absolute path of a file that lies in the problem's folder or is absolute itself. */
static int find_file(struct reading *reading, int line, const char *name, const char **path)
{
    MEM_LOCAL char *joined = file_join(reading->problem->folder, name);
    char real[PATH_MAX];
    bool found = *name != '\0' && realpath(joined, real) != NULL && file_is_regular(real);
    if (!found)
        return document_refuse(&reading->document, line, "expected a file, found no \"%.200s\"",
                               name);
    *path = arena_strdup(reading->problem->arena, real);
    return 0;
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), tail = strlen(suffix);
    return length > tail && strcmp(name + length - tail, suffix) == 0;
}

static bool is_identifier(const char *name)
{
    for (const char *at = name; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && *at != '_')
            return false;
    return *name != '\0' && !isdigit((unsigned char)*name);
}

/* "file.py", "file.py:function"; Python's function may stay open: the child then takes `reference`,
 * the problem's name, or the only function there is. */
static int read_reference(struct reading *reading)
{
    const struct document *document = &reading->document;
    struct problem *problem = reading->problem;
    const struct value *value = value_get(reading->root, "reference");
    bool is_short = problem_is_short(reading->root);
    int line = document_key_line(reading->root, "reference");
    const char *name = value == NULL ? "ref_impl.py" : value->text;
    if (value != NULL && value->kind != VALUE_TEXT)
        return document_refuse(document, line, "expected reference: FILE or FILE:FUNCTION");
    const char *colon = strrchr(name, ':'), *whole = name, *function = NULL;
    if (colon != NULL && strchr(colon, '/') == NULL) {
        function = arena_strdup(problem->arena, colon + 1);
        name = arena_strndup(problem->arena, name, (size_t)(colon - name));
        if (!is_identifier(function))
            return document_refuse(document, line, "expected FILE:FUNCTION, not \"%.200s\"", whole);
    }
    if (has_suffix(name, ".py"))
        problem->reference_kind = REFERENCE_PYTHON;
    else if (has_suffix(name, ".c"))
        problem->reference_kind = REFERENCE_C;
    else
        return document_refuse(document, line, "expected a reference in .py or .c, not \"%.200s\"",
                               name);
    if (function != NULL && problem->reference_kind == REFERENCE_C &&
        strcmp(function, "kernel") != 0)
        return document_refuse(document, line,
                               "expected a C reference's function to be \"kernel\", not \"%.80s\"",
                               function);
    if (function == NULL && problem->reference_kind == REFERENCE_C)
        function = "kernel"; /* built and called as a baseline is */
    else if (function == NULL && !is_short)
        function = "reference";
    problem->reference_function = function;
    return find_file(reading, line, name, &problem->reference_file);
}

static int read_libraries(struct reading *reading, const struct value *value,
                          struct baseline_spec *baseline)
{
    bool fine = value->kind == VALUE_TEXT && value->length > 0;
    for (size_t i = 0; fine && i < value->length; i++)
        fine = isalnum((unsigned char)value->text[i]) || strchr("_-+. ", value->text[i]) != NULL;
    if (!fine)
        return document_refuse(&reading->document, value->line,
                               "expected libraries: NAMES with spaces between, as \"openblas\"");
    baseline->libraries = value->text;
    return 0;
}

/* The environment goes to a process before its walls stand: libraries' settings, no paths. The
 * loader's own would have it run whatever lies beside the problem. */
static bool is_setting(const char *name, const char *text)
{
    static const char *const prefixes[] = {"OPENBLAS_", "OMP_", "GOMP_", "KMP_", "BLIS_", "MKL_"};
    bool known = false;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        known = known || strncmp(name, prefixes[i], strlen(prefixes[i])) == 0;
    return known && strpbrk(name, "=/") == NULL && text != NULL && strchr(text, '/') == NULL;
}

static int read_env(struct reading *reading, const struct value *map,
                    struct baseline_spec *baseline)
{
    enum { MOST = sizeof baseline->env / sizeof baseline->env[0] - 1 };
    if (map->kind != VALUE_MAP || map->count > MOST)
        return document_refuse(&reading->document, map->line,
                               "expected env: {NAME: VALUE}, at most %d", MOST);
    for (size_t i = 0; i < map->count; i++) {
        const char *key = map->keys[i];
        if (!is_setting(key, map->items[i]->text))
            return document_refuse(&reading->document, map->key_lines[i],
                                   "expected a library's setting without a path: OPENBLAS_*, "
                                   "OMP_*, GOMP_*, KMP_*, BLIS_* or MKL_*, not %.80s",
                                   key);
        baseline->env[i] = arena_printf(reading->problem->arena, "%s=%s", key, map->items[i]->text);
    }
    return 0;
}

static bool is_word(const char *name)
{
    for (const char *at = name; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr("_-.", *at) == NULL)
            return false;
    return isalnum((unsigned char)*name) && strlen(name) <= 63;
}

static int read_baseline(struct reading *reading, const char *name, int line,
                         const struct value *value, struct baseline_spec *baseline)
{
    static const char *const keys[] = {"file", "libraries", "env", NULL};
    const struct document *document = &reading->document;
    const struct value *file = value->kind == VALUE_MAP ? value_get(value, "file") : value;
    if (strcmp(name, "reference") == 0)
        return document_refuse(document, line,
                               "expected a baseline's name; \"reference\" is the reference's own");
    if (!is_word(name))
        return document_refuse(
            document, line,
            "expected a baseline's name of letters, digits, \"_\", \"-\", \".\", "
            "not \"%.80s\"",
            name);
    if (value->kind == VALUE_MAP && value_check_keys(value, document->name, keys, document->err))
        return -1;
    if (file == NULL || file->kind != VALUE_TEXT || !has_suffix(file->text, ".c"))
        return document_refuse(document, line,
                               "expected a C file for the baseline \"%.80s\": FILE.c, or "
                               "{file: FILE.c, libraries: ..., env: {...}}",
                               name);
    baseline->name = name;
    if (find_file(reading, file->line, file->text, &baseline->file) != 0)
        return -1;
    const struct value *libraries = value_get(value, "libraries");
    const struct value *env = value_get(value, "env");
    if (libraries != NULL && read_libraries(reading, libraries, baseline) != 0)
        return -1;
    return env != NULL ? read_env(reading, env, baseline) : 0;
}

static int read_baselines(struct reading *reading)
{
    struct problem *problem = reading->problem;
    const struct value *map = value_get(reading->root, "baselines");
    if (map == NULL)
        return 0;
    if (map->kind != VALUE_MAP || map->count > BASELINES_MAX)
        return document_refuse(&reading->document, map->line,
                               "expected baselines: {NAME: FILE.c, ...}, at most %d",
                               BASELINES_MAX);
    for (size_t i = 0; i < map->count; i++, problem->baseline_count++)
        if (read_baseline(reading, map->keys[i], map->key_lines[i], map->items[i],
                          &problem->baselines[i]) != 0)
            return -1;
    return 0;
}

int problem_read_code(struct reading *reading)
{
    struct problem *problem = reading->problem;
    if (read_reference(reading) != 0 || read_baselines(reading) != 0)
        return -1;
    const struct value *value = value_get(reading->root, "baseline");
    problem->baseline = "reference";
    if (value == NULL || (value->kind == VALUE_TEXT && strcmp(value->text, "reference") == 0))
        return 0;
    for (size_t i = 0; i < problem->baseline_count; i++)
        if (value->kind == VALUE_TEXT && strcmp(problem->baselines[i].name, value->text) == 0) {
            problem->baseline = problem->baselines[i].name;
            return 0;
        }
    return document_refuse(&reading->document, value->line,
                           "expected baseline: reference, or one of the baselines' names");
}
