/* twagent rerun ID...: stored kernels, measured here and now: do their figures hold? */
#include "base/buf.h"
#include "cli/eval/claim_print.h"
#include "cli/eval/eval.h"
#include "cli/find/find.h"
#include "cli/find/history.h"
#include "cli/options/command.h"

#include <stdio.h>
#include <string.h>

struct rerun { /* one kernel */
    struct arena *arena;
    const struct settings *settings;
    const char *id, *source;
    struct candidate_record candidate;
    struct run_record run;
    struct evaluation then;
    enum claim_answer answer;
};

static void print_answer(void *context, const struct evaluation *evaluation,
                         const struct value *facts, bool as_json)
{
    struct rerun *rerun = context;
    const struct claimed claimed = {
        .problem = rerun->run.problem, .kernel = rerun->candidate.id, .then = &rerun->then};
    (void)facts;
    rerun->answer = claim_tell(rerun->arena, &claimed, evaluation, as_json);
}

static int find(struct rerun *rerun, struct store *store, const char *id, struct err *err)
{
    struct arena *arena = rerun->arena;
    if (find_kernel(store, arena, id, &rerun->candidate, &rerun->run, err))
        return err->code == ERR_NOT_FOUND && strstr(id, "-c")
                   ? find_no_id(rerun->settings, store, arena, id, err)
                   : -1;
    if (find_same_definition(arena, &rerun->run, rerun->run.problem_file, err))
        return -1;
    rerun->id = rerun->candidate.id;
    rerun->source = history_source(store, arena, &rerun->candidate);
    const struct value *record = history_evaluation(store, arena, rerun->id);
    if (!rerun->source || !record)
        return err_set(err, ERR_USAGE, "the store holds no %s of %s",
                       rerun->source ? "evaluation" : "source", rerun->id);
    return evaluation_from_value(arena, record, &rerun->then, err) ? err_wrap(err, "%s", rerun->id)
                                                                   : 0;
}

static int measure(struct rerun *rerun)
{
    struct err err = {0};
    struct settings settings = claim_settings(rerun->settings, &rerun->then);
    struct eval_kernel kernel = {.name = rerun->candidate.name,
                                 .source = rerun->source,
                                 .length = strlen(rerun->source),
                                 .tune = rerun->candidate.tune,
                                 .print = print_answer,
                                 .context = rerun};
    if (!settings_given(&settings, offsetof(struct settings, search.backend)))
        settings.search.backend = rerun->run.backend;
    if (find_problem(rerun->arena, rerun->run.problem_file, settings.search.backend,
                     &kernel.problem, &err))
        return command_fail(&err);
    if (!settings.json) {
        printf("%s of %s, %s\n", rerun->id, rerun->run.problem, kernel.name);
        claim_print_figures("then", &rerun->then);
        fflush(stdout);
    }
    int code = eval_kernel(&settings, &kernel);
    return code == EXIT_WIN && rerun->answer != CLAIM_HOLDS ? EXIT_NONE : code;
}

/* All are found before any is measured. The exit code is the worst one. */
int command_rerun(const struct settings *settings, const char *const *arguments, size_t count)
{
    ARENA_LOCAL(arena);
    struct store *store = NULL;
    struct err err = {0};
    struct rerun *reruns = arena_array(arena, count, sizeof *reruns);
    int worst = EXIT_WIN, failed = history_open(settings, &store, &err);
    for (size_t i = 0; !failed && i < count; i++) {
        reruns[i] = (struct rerun){.arena = arena, .settings = settings};
        failed = find(&reruns[i], store, arguments[i], &err);
    }
    store_close(store);
    if (failed)
        return command_fail(&err);
    size_t hold = 0;
    for (size_t i = 0; i < count; i++) {
        int code = measure(&reruns[i]);
        worst = code > worst ? code : worst;
        hold += code == EXIT_WIN;
    }
    if (count > 1 && !settings->json)
        printf("%zu of %zu hold\n", hold, count);
    return worst;
}
