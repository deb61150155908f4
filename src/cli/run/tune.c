/* twagent tune PROBLEM [KERNEL]: a run that measures points of tune spaces alone, and what they say
 * (cli/tune/facts.h). */
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"
#include "cli/find/find.h"
#include "cli/find/history.h"
#include "cli/options/backends.h"
#include "cli/options/command.h"
#include "cli/run/chosen.h"
#include "cli/run/run.h"
#include "eval/problem/identity.h"
#include "eval/problem/problem.h"
#include "eval/problem/target.h"
#include "eval/problem/torch.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 100000 }; /* a round is one evaluation; the budget ends them */

static bool is_candidate(const char *word)
{
    size_t run = *word == 'r' ? strspn(word + 1, "0123456789") : 0;
    return run > 0 && strncmp(word + 1 + run, "-c", 2) == 0 &&
           isdigit((unsigned char)word[run + 3]);
}

/* A candidate's language is its file's. */
static int candidate_file(const struct settings *settings, struct arena *arena, const char *id,
                          const char **name, struct err *err)
{
    struct store *store = NULL;
    struct candidate_record record = {.name = ""};
    int failed =
        history_open(settings, &store, err) || history_candidate(store, arena, id, &record, err);
    if (failed && err->code == ERR_NOT_FOUND)
        failed = find_no_id(settings, store, arena, id, err);
    store_close(store);
    if (!failed)
        *name = record.name;
    return failed ? -1 : 0;
}

/* The starts, or where there are none the best kernel so far. */
static int without_kernel(struct settings *settings, struct arena *arena, struct err *err)
{
    struct problem *problem;
    struct store *store = NULL;
    struct run_record *runs = NULL;
    struct err ignored;
    const char *paths[1];
    const struct language *chosen[TARGET_FOLDERS_MAX];
    const struct target *target = target_find(settings->search.backend);
    size_t count = 0;
    bool has = false;
    settings->search.kernel = "starts";
    if (problem_load_with(settings->search.problem, settings->search.python, &problem, err))
        return -1;
    char hash[IDENTITY_BYTES];
    problem_identity(problem, hash);
    const struct problem_key key = {.name = arena_strdup(arena, problem->name), .hash = hash};
    for (size_t i = target_choose(target, settings->search.language, chosen); i-- > 0;)
        has = has || problem_starts(problem, language_folder(target, chosen[i]), paths, 1) > 0;
    problem_free(problem);
    if (has)
        return 0;
    if (history_open(settings, &store, &ignored) == 0 &&
        history_runs(store, arena, &runs, &count, &ignored))
        count = 0;
    const struct run_record *best = history_best(runs, count, &key);
    if (best)
        settings->search.kernel = best->best;
    else
        (void)err_set(err, ERR_USAGE, "nothing to tune: %s",
                      find_no_kernel(settings, store, arena, settings->search.problem));
    store_close(store);
    return best ? 0 : -1;
}

static int choose_kernel(struct settings *settings, struct arena *arena, const char *problem,
                         const char *word, struct err *err)
{
    struct search_options *options = &settings->search;
    const char *name = word;
    if (word && is_candidate(word) && !file_exists(word)) {
        if (candidate_file(settings, arena, word, &name, err))
            return -1;
        options->kernel = word;
    } else if (word && strcmp(word, "starts") != 0) {
        options->kernel = command_path(arena, word);
        if (*options->kernel != '/')
            return err_set(err, ERR_USAGE, "no kernel %s: neither a file nor a candidate's id",
                           word);
    }
    const struct language *language = name ? language_of_file(name) : NULL;
    if (language && !settings_given(settings, offsetof(struct settings, search.backend)))
        options->backend = language_target(language)->name;
    else if (!language && options->language &&
             !settings_given(settings, offsetof(struct settings, search.backend)))
        options->backend = backends_of_language(options->language);
    if (find_problem(arena, problem, options->backend, &options->problem, err))
        return -1;
    return options->kernel && *options->kernel && word ? 0 : without_kernel(settings, arena, err);
}

int command_tune(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct settings now = *settings;
    struct chosen chosen = {.text = NULL};
    struct err err = {0};
    ARENA_LOCAL(arena);
    const char *word = count > 1 ? arguments[1]
                       : settings_given(settings, offsetof(struct settings, search.kernel))
                           ? settings->search.kernel
                           : NULL;
    now.search.kernel = NULL;
    now.search.begun_ns = clock_now_ns();
    now.search.branching = now.search.implementations = 1;
    now.search.rounds = ROUNDS;
    now.search.budget_evaluations = now.max_evaluations;
    now.search.floor_share = 0;
    if (now.search.seed == 0)
        now.search.seed = (int64_t)(random_seed() >> 12);
    if (chosen_from_settings(arena, settings, &chosen, &err))
        return command_fail(&err);
    if (chosen.ideas.count > 0 &&
        (now.search.tune_strategy == TUNE_EXHAUSTIVE || now.search.tune_strategy == TUNE_RANDOM)) {
        fprintf(stderr,
                "twagent: --strategy: with a --model it is the model that proposes points\n");
        return EXIT_USAGE;
    }
    MEM_LOCAL char *folder = settings->store ? mem_strdup(settings->store) : store_default_folder();
    return choose_kernel(&now, arena, arguments[0], word, &err)
               ? command_fail(&err)
               : run_search(arena, &now, &chosen, folder);
}
