#include "cli/archive/bundle.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cli/find/find.h"
#include "cli/find/history.h"
#include "cli/options/command.h"
#include "eval/problem/target.h"
#include "eval/problem/torch.h"
#include "proof/bundle.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the problem's files ---- */

struct packing {
    struct arena *arena;
    const struct problem *problem;
    struct bundle *bundle;
};

/* A link in the folder of somebody else may lead to what nobody meant to give away. */
static bool leads_out(const char *path, const char *folder)
{
    char real[PATH_MAX];
    size_t length = strlen(folder);
    return realpath(path, real) == NULL || strncmp(real, folder, length) != 0 ||
           real[length] != '/' || !file_is_regular(real);
}

static int add_file(struct packing *packing, const char *path, struct err *err)
{
    struct bundle *bundle = packing->bundle;
    const char *folder = packing->problem->folder;
    size_t skip = strlen(folder);
    if (strncmp(path, folder, skip) != 0 || path[skip] != '/' || !bundle_name_fits(path + skip + 1))
        return err_set(err, ERR_USAGE,
                       "%.200s cannot be in a bundle: expected a file below %.200s with a name of "
                       "letters, digits, \"_\", \"-\", \".\"",
                       path, folder);
    if (leads_out(path, folder))
        return err_set(err, ERR_USAGE, "%.200s cannot be in a bundle: it leads out of %.200s", path,
                       folder);
    const char *name = path + skip + 1;
    for (size_t i = 0; i < bundle->file_count; i++)
        if (strcmp(bundle->files[i].name, name) == 0)
            return 0;
    if (bundle->file_count == BUNDLE_FILES_MOST)
        return err_set(err, ERR_LIMIT, "a bundle holds at most %d files", BUNDLE_FILES_MOST);
    struct buf text;
    buf_init(&text, BUNDLE_MOST);
    int failed = file_read(path, &text, err);
    if (!failed && utf8_valid_up_to(buf_text(&text), text.length) < text.length)
        failed = err_set(err, ERR_USAGE, "%.200s cannot be in a bundle: it is no text", path);
    const char *kept = failed ? NULL : arena_strndup(packing->arena, buf_text(&text), text.length);
    buf_free(&text);
    if (failed)
        return -1;
    bundle->files[bundle->file_count++] =
        (struct bundle_file){.name = arena_strdup(packing->arena, name), .text = kept};
    return 0;
}

static int is_module(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 3 && strcmp(entry->d_name + length - 3, ".py") == 0;
}

static int is_source(const struct dirent *entry)
{
    const struct language *language = language_of_file(entry->d_name);
    return entry->d_name[0] != '.' && language != NULL && !language->ambiguous;
}

/* Those that a definition may import; those that a backend with launch plans looks for. */
static int add_folder(struct packing *packing, const char *folder,
                      int (*wanted)(const struct dirent *), struct err *err)
{
    struct dirent **entries = NULL;
    int failed = 0, count = scandir(folder, &entries, wanted, alphasort);
    for (int i = 0; i < count; i++) {
        const char *path = arena_printf(packing->arena, "%s/%s", folder, entries[i]->d_name);
        if (!failed && !file_is_dir(path))
            failed = add_file(packing, path, err);
        free(entries[i]);
    }
    free(entries);
    return failed;
}

int bundle_pack(struct arena *arena, const struct problem *problem, const char *baseline,
                struct bundle *bundle, struct err *err)
{
    struct packing all = {.arena = arena, .problem = problem, .bundle = bundle};
    struct packing *packing = &all;
    const char *size = file_exists(problem->file) ? NULL : problem_size_of(problem->file);
    const char *file =
        size ? arena_strndup(arena, problem->file, (size_t)(size - problem->file)) : problem->file;
    if (add_file(packing, file, err))
        return -1;
    bundle->problem = problem->name;
    bundle->entry = bundle->files[0].name;
    bundle->size = size ? size + 1 : "";
    if (problem->torch)
        return 0;
    size_t stem = (size_t)(strrchr(problem->reference_file, '.') - problem->reference_file);
    const char *device =
        arena_printf(arena, "%.*s.cu", (int)stem, problem->reference_file); /* problem-format.md */
    const char *library = arena_printf(arena, "%s/baselines/torch.py", problem->folder);
    if (add_file(packing, problem->reference_file, err) ||
        (file_exists(device) && add_file(packing, device, err)) ||
        (strcmp(baseline, "torch") == 0 && file_exists(library) && add_file(packing, library, err)))
        return -1;
    for (size_t i = 0; i < problem->baseline_count; i++)
        if (add_file(packing, problem->baselines[i].file, err))
            return -1;
    if (add_folder(packing, arena_printf(arena, "%s/baselines", problem->folder), is_source, err))
        return -1;
    return problem->reference_kind == REFERENCE_PYTHON
               ? add_folder(packing, problem->folder, is_module, err)
               : 0;
}

/* ---- the whole ---- */

static const char *plain_name(struct arena *arena, const char *name)
{
    char *plain = arena_strdup(arena, name);
    for (char *at = plain; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("_-.", *at))
            *at = '_';
    return bundle_name_fits(plain) ? plain : arena_printf(arena, "kernel%s", strrchr(plain, '.'));
}

static int put_file(const struct settings *settings, struct arena *arena,
                    const struct bundle *bundle, struct err *err)
{
    struct bundle read_back;
    BUF_LOCAL(text, BUNDLE_MOST);
    if (bundle_encode(bundle, &text, err) ||
        bundle_decode(arena, buf_text(&text), text.length, &read_back, err) ||
        file_put(settings->bundle, buf_text(&text), text.length, err))
        return -1;
    printf("wrote %s: %s of %s with", settings->bundle, bundle->id, bundle->problem);
    for (size_t i = 0; i < bundle->file_count; i++)
        printf("%s %s", i ? "," : "", bundle->files[i].name);
    printf("\n  prove it elsewhere: twagent verify %s\n", settings->bundle);
    return 0;
}

int bundle_write(const struct settings *settings, struct store *store, struct arena *arena,
                 const struct candidate_record *candidate, struct err *err)
{
    struct run_record run;
    struct value *tune = NULL;
    struct problem *problem = NULL;
    if (history_run(store, arena, candidate->run, &run, err))
        return -1;
    struct bundle bundle = {.id = candidate->id,
                            .name = plain_name(arena, candidate->name),
                            .source = history_source(store, arena, candidate),
                            .evidence = history_evaluation(store, arena, candidate->id),
                            .final = history_is_final(store, arena, candidate->id),
                            .twagent = TWAGENT_VERSION,
                            .written_ms = clock_wall_ms()};
    if (!bundle.source || !bundle.evidence)
        return err_set(err, ERR_USAGE, "the store holds no %s of %s",
                       bundle.source ? "evaluation" : "source", candidate->id);
    if (evaluation_from_value(arena, bundle.evidence, &bundle.claim, err) ||
        value_parse_json(arena, "tune", candidate->tune, strlen(candidate->tune), &tune, err) ||
        find_same_definition(arena, &run, run.problem_file, err) ||
        problem_load_with(run.problem_file, settings->search.python, &problem, err))
        return err_wrap(err, "%s", candidate->id);
    bundle.tune = tune;
    int failed = bundle_pack(arena, problem, bundle.claim.baseline, &bundle, err) ||
                 put_file(settings, arena, &bundle, err);
    problem_free(problem);
    return failed ? err_wrap(err, "%s", candidate->id) : 0;
}
