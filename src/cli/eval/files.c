/* The files that `eval` and `profile` are told of, and the kernel that --against names. */
#include "cli/eval/eval.h"

#include "agents/search/search.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/find/find.h"
#include "cli/find/history.h"
#include "cli/options/command.h"
#include "eval/candidate/candidate.h"

#include <stdlib.h>
#include <string.h>

enum { SOURCE_MOST = 1 << 20 };

/* "BM=64,BN=128" -> {"BM": 64, "BN": 128}; ERR_USAGE on anything else. */
static char *tune_json(const char *text, struct err *err)
{
    JSON_LOCAL(json, out, 4096);
    json_object(&json);
    char *copy = mem_strdup(text), *rest = copy;
    int failed = 0;
    for (char *item; !failed && (item = strsep(&rest, ","));) {
        char *equals = strchr(item, '='), *end = NULL;
        if (!equals || equals == item || !equals[1]) {
            failed = err_set(err, ERR_USAGE, "--tune: expected NAME=NUMBER, not \"%s\"", item);
            break;
        }
        *equals = '\0';
        long long number = strtoll(equals + 1, &end, 10);
        if (*end)
            failed = err_set(err, ERR_USAGE, "--tune: %s: expected a whole number, not \"%s\"",
                             item, equals + 1);
        json_put_int(&json, item, number);
    }
    json_object_end(&json);
    mem_free(copy);
    if (failed)
        return NULL;
    return buf_take(&out);
}

static const char *name_in(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int read_file(struct arena *arena, const char *path, const char **source, size_t *length,
                     struct err *err)
{
    BUF_LOCAL(text, SOURCE_MOST);
    if (file_read(path, &text, err) ||
        candidate_check_text(name_in(path), buf_text(&text), text.length, err))
        return -1;
    *source = arena_strndup(arena, buf_text(&text), text.length);
    *length = text.length;
    return 0;
}

/* A file, else a candidate of the store. */
static int read_rival(const struct settings *settings, struct arena *arena,
                      struct eval_kernel *kernel, struct err *err)
{
    struct store *store = NULL;
    struct candidate_record candidate = {.name = ""};
    const char *word = kernel->rival = settings->against;
    if (file_exists(word)) {
        kernel->rival_name = name_in(word);
        return read_file(arena, word, &kernel->rival_source, &kernel->rival_length, err)
                   ? err_wrap(err, "--against")
                   : 0;
    }
    if (history_open(settings, &store, err) ||
        history_candidate(store, arena, word, &candidate, err) ||
        !(kernel->rival_source = history_source(store, arena, &candidate))) {
        store_close(store);
        return err_set(err, ERR_USAGE, "--against: \"%s\" is neither a file nor a candidate's id",
                       word);
    }
    store_close(store);
    kernel->rival_name = candidate.name;
    kernel->rival_length = strlen(kernel->rival_source);
    kernel->rival_tune = candidate.tune;
    return 0;
}

int eval_run(const struct settings *settings, const char *const *arguments, size_t count,
             eval_printer *print)
{
    ARENA_LOCAL(arena);
    struct err err = {0};
    struct eval_kernel whole = {.print = print,
                                .cached = !print && settings->sweep < 0 && !settings->until &&
                                          !settings->against};
    struct eval_kernel *kernels = arena_array(arena, count, sizeof *kernels);
    const char *backend = eval_settings_for(settings, arguments[1]).search.backend;
    MEM_LOCAL char *tune = NULL;
    if (count > 2 && settings->sweep >= 0)
        (void)err_set(&err, ERR_USAGE, "--sweep: takes one FILE");
    if (err.code || find_problem(arena, arguments[0], backend, &whole.problem, &err) ||
        (settings->tune && !(tune = tune_json(settings->tune, &err))) ||
        (settings->against && read_rival(settings, arena, &whole, &err)))
        return command_fail(&err);
    whole.tune = tune;
    for (size_t i = 0; i + 1 < count; i++) {
        const char *file = arguments[i + 1];
        kernels[i] = whole;
        kernels[i].name = name_in(file);
        if (read_file(arena, file, &kernels[i].source, &kernels[i].length, &err) == 0 &&
            strcmp(eval_settings_for(settings, file).search.backend, backend) != 0)
            (void)err_set(&err, ERR_USAGE, "%s: runs on another backend than %s", file,
                          arguments[1]);
        if (err.code) {
            (void)err_wrap(&err, "the candidate");
            command_fail(&err);
            return EXIT_USAGE;
        }
    }
    return eval_kernels(settings, kernels, count - 1);
}

int command_eval(const struct settings *settings, const char *const *arguments, size_t count)
{
    return eval_run(settings, arguments, count, NULL);
}
