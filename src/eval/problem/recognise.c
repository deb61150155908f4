/* Asks libexec/plain_shipped.py. A definition in C is built for it. Whatever fails here is no
 * fault: the problem has no starts, and whoever checks it is told what is wrong. */
#include "eval/problem/recognise.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/value.h"
#include "eval/problem/identity.h"
#include "eval/problem/question.h"
#include "eval/problem/shipped.h"
#include "process/toolchain.h"

#include <stdlib.h>
#include <string.h>

enum {
    SOURCE_MOST = 1 << 20,
    REQUEST_MOST = 1 << 19,
    ANSWER_MOST = 1 << 16,
    ANSWER_MS = 60000, /* plain loops in Python, at small shapes */
    BUILD_MS = 60000,
    DRAWN = 6 /* shapes besides the spec's own: two dims that are always alike tell nothing apart */
};

/* ---- the request ---- */

static void put_dims(struct json *json, const struct problem *problem, const struct names *dims)
{
    json_object(json);
    for (size_t i = 0; i < problem->dim_count; i++) {
        int64_t number = 0;
        if (expr_lookup_names((void *)(uintptr_t)dims, problem->dims[i].name, &number))
            json_put_int(json, problem->dims[i].name, number);
    }
    json_object_end(json);
}

static void put_shapes(struct json *json, const struct problem *problem)
{
    struct names drawn;
    struct err ignored;
    json_put_array(json, "shapes");
    for (uint64_t i = 0; i < DRAWN; i++)
        if (problem_draw_dims(problem, i + 1, &drawn, &ignored) == 0)
            put_dims(json, problem, &drawn);
    for (size_t i = 0; i < problem->shape_count; i++)
        put_dims(json, problem, &problem->shapes[i]);
    json_array_end(json);
}

static void put_request(struct json *json, const struct problem *problem, const char *library)
{
    json_object(json);
    json_put_text(json, "file", problem->reference_file);
    json_put_text(json, "function", problem->reference_function);
    json_put_text(json, "name", problem->name);
    json_put_text(json, "library", library);
    shipped_put_tensors(json, problem);
    json_put_array(json, "dims");
    for (size_t i = 0; i < problem->dim_count; i++)
        json_text(json, problem->dims[i].name);
    json_array_end(json);
    put_shapes(json, problem);
    json_key(json, "shipped");
    shipped_put(json);
    json_object_end(json);
}

/* ---- a definition in C ---- */

static bool real_is(const struct problem *problem, enum dtype dtype)
{
    return problem_precise(problem)->dtype == dtype;
}

static const char *build(const struct problem *problem, const char *folder)
{
    struct arena *arena = problem->arena;
    struct err ignored;
    BUF_LOCAL(text, SOURCE_MOST);
    const char *source = arena_printf(arena, "%s/definition.c", folder);
    const char *library = arena_printf(arena, "%s/definition.so", folder), *gcc = tool_find("gcc");
    const char *const argv[] = {
        gcc,        "-std=gnu17",
        "-O1",      "-shared",
        "-fPIC",    "-fopenmp",
        "-w",       real_is(problem, DTYPE_FLOAT64) ? "-DREAL=double" : "-DREAL=float",
        "-include", "stddef.h",
        "-include", "stdint.h",
        "-o",       library,
        source,     "-lm",
        NULL};
    const char *const env[] = {"PATH=/usr/bin:/bin:/usr/local/bin", "LC_ALL=C",
                               arena_printf(arena, "TMPDIR=%s", folder), NULL};
    const struct tool tool = {
        .argv = argv, .profile = "compile", .env = env, .write = folder, .timeout_ms = BUILD_MS};
    return gcc != NULL && file_read(problem->reference_file, &text, &ignored) == 0 &&
                   file_write(source, buf_text(&text), text.length, &ignored) == 0 &&
                   tool_run(&tool, NULL, NULL, &ignored) == 0
               ? library
               : NULL;
}

/* ---- asking ---- */

static int ask(const struct problem *problem, const char *script, struct buf *answer,
               struct err *err)
{
    struct interpreter found;
    const char *python = getenv("TWAGENT_PYTHON"), *library = NULL;
    MEM_LOCAL char *problems = file_data_path("problems");
    struct question question = {.python = &found,
                                .script = script,
                                .readable = {problem->folder, problems},
                                .timeout_ms = ANSWER_MS,
                                .arena = problem->arena};
    if (interpreter_find_numpy(python != NULL && *python != '\0' ? python : NULL, problem->arena,
                               &found, err) != 0 ||
        question_open(&question, err) != 0)
        return -1;
    bool plain_c = problem->reference_kind == REFERENCE_C;
    if (plain_c)
        library = build(problem, question.scratch);
    JSON_LOCAL(json, request, REQUEST_MOST);
    put_request(&json, problem, library);
    int status = plain_c && library == NULL
                     ? err_set(err, ERR_USAGE, "%s does not build", problem->reference_file)
                     : question_ask(&question, buf_text(&request), answer, err);
    question_close(&question);
    return status;
}

/* Everything that an answer follows from. */
static char *memory_of(const struct problem *problem, const char *script)
{
    char text[IDENTITY_BYTES];
    struct err ignored;
    problem_identity(problem, text);
    if (*text == '\0')
        return NULL;
    struct hash hash = hash_bytes(text, strlen(text));
    MEM_LOCAL char *match = file_data_path("libexec/shipped_match.py");
    const char *const scripts[] = {script, match};
    for (size_t i = 0; i < 2; i++) {
        BUF_LOCAL(source, SOURCE_MOST);
        if (scripts[i] == NULL || file_read(scripts[i], &source, &ignored) != 0)
            return NULL;
        hash = hash_combine(hash, hash_bytes(buf_text(&source), source.length));
    }
    JSON_LOCAL(json, shipped, REQUEST_MOST);
    shipped_put(&json);
    hash_format(hash_combine(hash, hash_bytes(buf_text(&shipped), shipped.length)), text);
    return file_cache_path("shipped", text);
}

static void remember(const char *memory, const struct buf *answer)
{
    struct err ignored;
    MEM_LOCAL char *folder = mem_strdup(memory);
    *strrchr(folder, '/') = '\0';
    if (file_make_dirs(folder, &ignored) == 0)
        (void)(file_write(memory, buf_text(answer), answer->length, &ignored) == 0);
}

const struct value *recognise(const struct problem *problem)
{
    struct err ignored;
    struct value *found = NULL;
    MEM_LOCAL char *script = file_data_path("libexec/plain_shipped.py");
    MEM_LOCAL char *memory = script != NULL ? memory_of(problem, script) : NULL;
    BUF_LOCAL(answer, ANSWER_MOST);
    if (memory == NULL)
        return NULL;
    if (file_read(memory, &answer, NULL) != 0) {
        buf_reset(&answer);
        if (ask(problem, script, &answer, &ignored) != 0)
            return NULL;
        remember(memory, &answer);
    }
    bool read = value_parse_json(problem->arena, "shipped", buf_text(&answer), answer.length,
                                 &found, NULL) == 0;
    return read && value_text(found, "name", NULL) != NULL ? found : NULL;
}
