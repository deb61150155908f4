/* twagent problem new DIR: a working skeleton. twagent problem check DIR: is a problem fit? */
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/find/find.h"
#include "cli/options/command.h"
#include "cli/print/display.h"
#include "cli/print/print.h"
#include "cli/problem/folder.h"
#include "eval/lane/lane.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- new ---- */

static const struct {
    const char *name, *text;
} skeleton[] = {
    {"spec.yaml", "# What to compute. docs/problem-format.md has every key.\n"
                  "family: elementwise\n"
                  "description: y = a * x + b, element by element\n"
                  "dims: {M: 1024, N: 1024}\n"
                  "inputs:\n"
                  "  A: {shape: [M, N], dtype: float32}\n"
                  "  X: {shape: [M, N], dtype: float32}\n"
                  "  B: {shape: [N], dtype: float32}\n"
                  "outputs:\n"
                  "  Y: {shape: [M, N], dtype: float32}\n"
                  "reference: ref_impl.py            # def reference(A, X, B)\n"
                  "baselines: {naive: baselines/naive.c}\n"
                  "flops: 2*M*N\n"
                  "tolerance: auto\n"
                  "check: [{M: 1, N: 1}, {M: 3, N: 1}, {M: 17, N: 33}, {M: 127, N: 65}]\n"},
    {"ref_impl.py",
     "# The trusted definition: slow and obviously right. Called with arrays of the spec's\n"
     "# dtypes, and with float64 ones for the exact result: let dtypes follow the inputs.\n"
     "\n\n"
     "def reference(A, X, B):\n"
     "    return A * X + B\n"},
    {"baselines/naive.c",
     "/* The plain loop: a named baseline. */\n"
     "void kernel(const float *A, const float *X, const float *B, float *Y, int64_t M, int64_t N)\n"
     "{\n"
     "    for (int64_t i = 0; i < M; i++)\n"
     "        for (int64_t j = 0; j < N; j++)\n"
     "            Y[i * N + j] = A[i * N + j] * X[i * N + j] + B[j];\n"
     "}\n"},
    {"starts/cpu/rows.c",
     "/*---\n"
     "tune:\n"
     "  CHUNK: [1, 4, 16, 64]\n"
     "  UNROLL: [1, 4, 8]\n"
     "---*/\n"
     "/* Rows shared out among threads. The search tunes CHUNK and UNROLL. */\n"
     "#define PRAGMA(text) _Pragma(#text)\n"
     "#define UNROLLED(n) PRAGMA(GCC unroll n)\n"
     "\n"
     "void kernel(const float *A, const float *X, const float *B, float *Y, int64_t M, int64_t N)\n"
     "{\n"
     "#pragma omp parallel for schedule(static, CHUNK)\n"
     "    for (int64_t i = 0; i < M; i++) {\n"
     "        UNROLLED(UNROLL)\n"
     "        for (int64_t j = 0; j < N; j++)\n"
     "            Y[i * N + j] = A[i * N + j] * X[i * N + j] + B[j];\n"
     "    }\n"
     "}\n"},
};

/* The problem is called as its folder, so that not every folder will do. */
static const char *name_of(struct arena *arena, const char *folder, struct err *err)
{
    size_t end = strlen(folder);
    while (end > 1 && folder[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && folder[start - 1] != '/')
        start--;
    const char *name = arena_strndup(arena, folder + start, end - start);
    bool fit = *name != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
    for (const char *at = name; *at; at++)
        fit = fit && (isalnum((unsigned char)*at) || strchr("_-.", *at));
    if (fit)
        return name;
    (void)err_set(err, ERR_USAGE,
                  "expected a folder named with letters, digits, \"_\", \"-\", \".\", not \"%s\": "
                  "the problem is called as its folder",
                  folder);
    return NULL;
}

static int problem_new(struct arena *arena, const char *folder, struct err *err)
{
    const char *name = name_of(arena, folder, err);
    if (name == NULL)
        return -1;
    if (file_exists(folder))
        return err_set(err, ERR_USAGE, "%s: is there already; name a folder that is not", folder);
    for (size_t i = 0; i < sizeof skeleton / sizeof skeleton[0]; i++) {
        char *path = file_join(folder, skeleton[i].name);
        char *slash = strrchr(path, '/');
        *slash = '\0';
        int failed = file_make_dirs(path, err);
        *slash = '/';
        BUF_LOCAL(text, 1 << 16);
        if (i == 0)
            buf_addf(&text, "name: %s\n", name);
        buf_add_text(&text, skeleton[i].text);
        failed = failed || file_write(path, buf_text(&text), text.length, err);
        mem_free(path);
        if (failed)
            return -1;
    }
    return 0;
}

static void say_new(const char *folder, bool as_json)
{
    JSON_LOCAL(json, text, 1 << 16);
    json_object(&json);
    json_put_text(&json, "folder", folder);
    json_put_array(&json, "files");
    for (size_t i = 0; i < sizeof skeleton / sizeof skeleton[0]; i++)
        json_text(&json, skeleton[i].name);
    json_array_end(&json);
    json_object_end(&json);
    if (as_json)
        printf("%s\n", buf_text(&text));
    else
        printf(
            "wrote %s: spec.yaml, ref_impl.py (the definition), baselines/naive.c, "
            "starts/cpu/rows.c\n"
            "next: make them your operation's, then twagent problem check %s, twagent run %s\n"
            "Without baselines (the key, too) and starts, run prints a first kernel to fill in.\n",
            folder, folder, folder);
}

/* ---- check ---- */

static void put_finding(struct buf *words, const struct value *finding)
{
    bool passed = value_bool(finding, "passed", false);
    buf_addf(words, "  %s %-24s %s\n", passed ? "ok  " : "FAIL", value_text(finding, "name", ""),
             value_text(finding, "text", ""));
}

static int check_report(const char *problem, const struct value *answer, bool as_json)
{
    JSON_LOCAL(json, text, 1 << 20);
    BUF_LOCAL(words, 1 << 18);
    const struct value *findings = value_get(answer, "findings");
    bool fit = value_bool(answer, "fit", false);
    buf_addf(&words, "%s: %s\n", problem, fit ? "fit" : "not fit");
    for (size_t i = 0; findings && i < findings->count; i++)
        put_finding(&words, findings->items[i]);
    json_object(&json);
    lane_put_answer(&json, answer);
    json_put_text(&json, "text", buf_text(&words));
    json_object_end(&json);
    if (as_json)
        puts(buf_text(&text));
    else
        print_lines(buf_text(&words), false);
    return fit ? 0 : EXIT_NONE;
}

static int check_one(const struct settings *settings, const char *folder)
{
    ARENA_LOCAL(arena);
    const char *problem;
    struct err err;
    if (find_problem(arena, folder, settings->search.backend, &problem, &err))
        return command_fail(&err);
    struct lane_spec spec = settings_lane(settings, problem);
    struct lane_request open, check = {.op = LANE_CHECK_PROBLEM, .id = "check"};
    spec.roofline = spec.later = true;
    display_tell_waits(stderr);
    bool watched = !settings->json && print_draws(STDERR_FILENO);
    if (watched)
        fprintf(stderr, "checking %s ...", problem);
    lane_ask(&spec, "problem-check", &open, &check, NULL);
    if (watched)
        fputs("\r\033[K", stderr);
    err = open.err.code ? open.err : check.err;
    int code = err.code ? command_fail(&err) : check_report(problem, check.answer, settings->json);
    arena_free(open.arena);
    arena_free(check.arena);
    return code;
}

int command_problem(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct err err = {0};
    (void)count;
    if (strcmp(arguments[0], "check") == 0)
        return problem_folder_is(arguments[1]) ? problem_folder_check(settings, arguments[1])
                                               : check_one(settings, arguments[1]);
    if (strcmp(arguments[0], "new") != 0) {
        fprintf(stderr, "twagent: problem: expected new or check, not \"%s\"\n", arguments[0]);
        return EXIT_USAGE;
    }
    ARENA_LOCAL(arena);
    int failed = problem_new(arena, arguments[1], &err);
    if (failed)
        return command_fail(&err);
    say_new(arguments[1], settings->json);
    return 0;
}
