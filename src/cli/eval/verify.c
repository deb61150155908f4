/* twagent verify BUNDLE: a stranger's kernel, proved again here. Everything in the file is hostile:
 * the kernel runs where kernels run, the definition where definitions run, and nothing of it is
 * read, run or printed before it is looked at. */
#include "base/file.h"
#include "base/mem.h"
#include "cli/eval/claim_print.h"
#include "cli/eval/eval.h"
#include "cli/options/backends.h"
#include "cli/options/command.h"
#include "eval/candidate/candidate.h"
#include "eval/problem/torch.h"
#include "process/sandbox.h"
#include "proof/bundle.h"
#include "report/words.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { WITHIN_MS = 15 * 60 * 1000 }; /* a definition may sleep; nobody waits for it all night */

struct verify {
    struct arena *arena;
    const struct settings *settings;
    const char *file; /* the bundle's */
    struct bundle bundle;
    char folder[PATH_MAX]; /* where the problem lies; "": none yet */
    int lock;
    struct problem *problem;
    const char *tune;
    const char *shipped; /* words: whether it is the problem of that name that ships */
    enum claim_answer answer;
};

/* ---- what is looked at first ---- */

/* What a definition may do where the kernel keeps it from nothing is what its author likes. */
static int check_walls(const struct verify *verify, struct err *err)
{
    struct sandbox_facts facts;
    const struct bundle *bundle = &verify->bundle;
    const struct language *language = language_of_file(bundle->name);
    const struct target *target = language ? language_target(language) : NULL;
    if (!target)
        return err_set(err, ERR_USAGE, "no language has the suffix of %s", bundle->name);
    bool device = backends_find(target->name)->device, python = false;
    size_t length = strlen(bundle->entry);
    python = length > 3 && strcmp(bundle->entry + length - 3, ".py") == 0;
    for (size_t i = 0; i < bundle->file_count; i++)
        python = python || strcmp(bundle->files[i].name, "baselines/torch.py") == 0;
    sandbox_probe(&facts);
    if (verify->settings->search.unconfined)
        return 0;
    if (facts.missing)
        return err_set(err, ERR_ENVIRONMENT,
                       "%s: a stranger's definition could reach this user's files; twagent doctor "
                       "says what to do, --unconfined goes on all the same",
                       facts.missing);
    if (device && python)
        return err_set(err, ERR_ENVIRONMENT,
                       "on a GPU its PyTorch code would run outside of the sandbox, as this user: "
                       "read it (problem.files in the bundle), then --unconfined goes on");
    return 0;
}

/* A killed verify's folder goes as a killed worker's: the next one sweeps what is not locked. */
static int make_folder(struct verify *verify, struct err *err)
{
    const char *parent = getenv("TMPDIR");
    snprintf(verify->folder, sizeof verify->folder, "%s/twagent-worker-XXXXXX",
             parent && *parent == '/' ? parent : "/tmp");
    if (!mkdtemp(verify->folder)) {
        int failed = err_set_errno(err, ERR_IO, errno, "%s", verify->folder);
        *verify->folder = '\0';
        return failed;
    }
    verify->lock = open(verify->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (verify->lock >= 0)
        (void)flock(verify->lock, LOCK_EX | LOCK_NB);
    return 0;
}

static int check_inside(const char *path, const char *folder, struct err *err)
{
    size_t length = strlen(folder);
    if (strncmp(path, folder, length) == 0 && path[length] == '/')
        return 0;
    return err_set(err, ERR_USAGE, "its problem names a file that is not in the bundle: %.200s",
                   path);
}

/* As the worker loads it: whatever it names lies in the folder. */
static int load(struct verify *verify, struct err *err)
{
    const struct bundle *bundle = &verify->bundle;
    struct arena *arena = verify->arena;
    const char *path = arena_printf(arena, "%s/%s%s%s", verify->folder, bundle->entry,
                                    *bundle->size ? "@" : "", bundle->size);
    if (problem_load_with(path, verify->settings->search.python, &verify->problem, err))
        return err_wrap(err, "its problem");
    const struct problem *problem = verify->problem;
    if (check_inside(problem->reference_file, problem->folder, err))
        return -1;
    for (size_t i = 0; i < problem->baseline_count; i++) {
        const struct baseline_spec *baseline = &problem->baselines[i];
        if (baseline->file && check_inside(baseline->file, problem->folder, err))
            return -1;
    }
    return 0;
}

/* The evidence names what it is of: this source with these numbers. */
static int check_identity(struct verify *verify, struct err *err)
{
    const struct bundle *bundle = &verify->bundle;
    struct candidate *candidate = NULL;
    struct names tune;
    char identity[33];
    if (candidate_check_text(bundle->name, bundle->source, strlen(bundle->source), err) ||
        candidate_parse(verify->problem, bundle->name, bundle->source, strlen(bundle->source),
                        &candidate, err))
        return -1;
    int failed = 0;
    tune_at(candidate, 0, &tune);
    for (size_t i = 0; !failed && i < bundle->tune->count; i++)
        failed = names_set(&tune, bundle->tune->keys[i], bundle->tune->items[i]->integer, err) != 0;
    hash_format(candidate_identity(candidate, &tune), identity);
    candidate_free(candidate);
    if (!failed && strcmp(identity, bundle->claim.identity) != 0)
        failed = err_set(err, ERR_USAGE,
                         "its evidence is of another source or of other tune numbers: their "
                         "identity is %s, not %.32s",
                         identity, bundle->claim.identity);
    verify->tune = value_json(bundle->tune, verify->arena);
    return failed;
}

/* A speed-up is worth what it is against: a stranger's "naive" may sleep. */
static const char *compare_shipped(const struct verify *verify)
{
    const struct bundle *bundle = &verify->bundle;
    struct arena *arena = verify->arena;
    const char *relative = arena_printf(arena, "problems/%s", bundle->problem);
    MEM_LOCAL char *folder = file_data_path(relative);
    if (!folder)
        return "the author's own: its definition and its baselines are in the bundle";
    for (size_t i = 0; i < bundle->file_count; i++) {
        struct err ignored;
        BUF_LOCAL(text, BUNDLE_MOST);
        MEM_LOCAL char *path = file_join(folder, bundle->files[i].name);
        if (file_read(path, &text, &ignored) || strcmp(buf_text(&text), bundle->files[i].text) != 0)
            return arena_printf(arena, "NOT the %s that ships here: %s differs", bundle->problem,
                                bundle->files[i].name);
    }
    return "as it ships with this twagent, definition and baselines";
}

/* ---- what is told ---- */

static void print_claim(const struct verify *verify)
{
    const struct bundle *bundle = &verify->bundle;
    char date[32];
    printf("%s of %s, %s%s%s\n", bundle->id, bundle->problem, bundle->name,
           bundle->tune->count ? " " : "", bundle->tune->count ? verify->tune : "");
    printf("  %-10s %s by twagent %s\n", "written", words_date(bundle->written_ms, date),
           bundle->twagent);
    claim_print_figures("claimed", &bundle->claim);
    printf("  %-10s %s%s\n", "on", claim_machine(verify->arena, &bundle->claim),
           bundle->final ? ", again in fresh processes with fresh seeds" : "");
    printf("  %-10s %s\n", "problem", verify->shipped);
    fflush(stdout); /* it is a minute until the rest */
}

static void print_answer(void *context, const struct evaluation *evaluation,
                         const struct value *facts, bool as_json)
{
    struct verify *verify = context;
    const struct bundle *bundle = &verify->bundle;
    const struct claimed claimed = {.problem = bundle->problem,
                                    .kernel = bundle->id,
                                    .origin = verify->shipped,
                                    .then = &bundle->claim};
    (void)facts;
    verify->answer = claim_tell(verify->arena, &claimed, evaluation, as_json);
}

/* ---- all of it ---- */

static int prepare(struct verify *verify, struct err *err)
{
    BUF_LOCAL(text, BUNDLE_MOST);
    if (file_read(verify->file, &text, err)) {
        err->code = ERR_USAGE;
        return -1;
    }
    if (bundle_decode(verify->arena, buf_text(&text), text.length, &verify->bundle, err) ||
        check_walls(verify, err) || make_folder(verify, err) ||
        bundle_unpack(&verify->bundle, verify->folder, err) || load(verify, err) ||
        check_identity(verify, err))
        return err_wrap(err, "%s", verify->file);
    if (strcmp(verify->problem->name, verify->bundle.problem) != 0)
        return err_set(err, ERR_USAGE, "%s: its problem is called %s, not %s", verify->file,
                       verify->problem->name, verify->bundle.problem);
    verify->shipped = compare_shipped(verify);
    return 0;
}

static int measure(struct verify *verify)
{
    const struct bundle *bundle = &verify->bundle;
    const struct settings settings = claim_settings(verify->settings, &bundle->claim);
    const struct eval_kernel kernel = {.problem = verify->problem->file,
                                       .name = bundle->name,
                                       .source = bundle->source,
                                       .length = strlen(bundle->source),
                                       .tune = verify->tune,
                                       .within_ms = WITHIN_MS,
                                       .print = print_answer,
                                       .context = verify};
    if (!settings.json)
        print_claim(verify);
    int code = eval_kernel(&settings, &kernel);
    return code == EXIT_WIN && verify->answer != CLAIM_HOLDS ? EXIT_NONE : code;
}

int command_verify(const struct settings *settings, const char *const *arguments, size_t count)
{
    ARENA_LOCAL(arena);
    struct err err = {0}, ignored;
    struct verify verify = {.arena = arena, .settings = settings, .file = arguments[0], .lock = -1};
    (void)count;
    int code = prepare(&verify, &err) ? command_fail(&err) : measure(&verify);
    problem_free(verify.problem);
    if (*verify.folder && file_remove_tree(verify.folder, &ignored))
        fprintf(stderr, "twagent: %s\n", ignored.message);
    if (verify.lock >= 0)
        close(verify.lock);
    return code;
}
