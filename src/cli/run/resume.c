/* twagent resume RUN: a run that was paused goes on where it is; one that was stopped or died goes
 * on in this terminal. */
#include "base/mem.h"
#include "cli/find/control.h"
#include "cli/options/command.h"
#include "cli/print/run_words.h"
#include "cli/run/chosen.h"
#include "cli/run/run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* How it is shown and where the store is may differ; what the search does may not. */
static const char *given_option(const struct settings *settings)
{
    static const char *const harmless[] = {"store", "config", "json", "quiet", "verbose", "report"};
    for (size_t i = 0; i < settings_table.count; i++) {
        const char *name = settings_table.options[i].name;
        bool counts = settings->origins[i] == ORIGIN_COMMAND_LINE;
        for (size_t h = 0; counts && h < sizeof harmless / sizeof harmless[0]; h++)
            counts = strcmp(name, harmless[h]) != 0;
        if (counts)
            return name;
    }
    return NULL;
}

static int wake(const struct settings *settings, const char *folder, const struct run_record *run)
{
    enum { WAIT_MS = 5000 };
    struct err err = {0};
    const char *option = given_option(settings);
    if (option) {
        fprintf(
            stderr,
            "twagent: %s goes on now: --%s cannot change that; stop it first (twagent stop %s)\n",
            run->id, option, run->id);
        return EXIT_USAGE;
    }
    if (!*run->paused) {
        printf("%s goes on already (twagent status %s)\n", run->id, run->id);
        return 0;
    }
    if (control_signal(folder, run, SIGUSR2, &err))
        return command_fail(&err);
    if (!run_paused_by_person(run))
        printf("%s goes on by itself, once that is over: %s\n", run->id, run->paused);
    else if (control_await_pause(settings, run->id, false, WAIT_MS))
        printf("%s goes on\n", run->id);
    else
        printf("%s was told to go on (twagent status %s)\n", run->id, run->id);
    return 0;
}

/* What the record says, under what the command line says. */
static int prepare(struct settings *settings, struct arena *arena, const struct run_record *run,
                   struct chosen *chosen, struct err *err)
{
    struct value *recorded;
    if (value_parse_json(arena, run->id, run->options, strlen(run->options), &recorded, err) ||
        options_decode(&settings_table, settings, settings->origins, arena, recorded, err) ||
        chosen_again(arena, run->choice, settings, chosen, err))
        return err_wrap(err, "%s cannot go on", run->id);
    settings->search.resume = run->id;
    if (settings->search.rounds < run->round)
        return err_set(err, ERR_USAGE, "--rounds %lld: %s is in round %lld already",
                       (long long)settings->search.rounds, run->id, (long long)run->round);
    return 0;
}

static int go_on(const struct settings *settings, struct arena *arena, const char *folder,
                 const struct run_record *run)
{
    struct settings now = *settings;
    struct chosen chosen;
    struct err err = {0};
    pid_t owner = control_owner(folder);
    if (owner != 0) {
        fprintf(stderr,
                "twagent: another run goes on in this store (process %ld, twagent status)\n",
                (long)owner);
        return EXIT_ENVIRONMENT;
    }
    if (!run_can_go_on(run) && !given_option(settings)) {
        const char *end = run_words_end(arena, run);
        printf("%s is done: %s", run->id, end);
        if (strcmp(end, "all rounds done") == 0)
            printf("; with more it goes on: twagent resume %s --rounds %lld", run->id,
                   2 * (long long)run->round);
        putchar('\n');
        return run->win && run->verified ? EXIT_WIN : EXIT_NONE;
    }
    if (strncmp(run->stopped, "budget", 6) == 0 && !given_option(settings)) {
        printf("%s has spent its %s; with a larger one it goes on: %s\n", run->id, run->stopped,
               run_words_resume(arena, run));
        return run->win && run->verified ? EXIT_WIN : EXIT_STOPPED;
    }
    if (prepare(&now, arena, run, &chosen, &err))
        return command_fail(&err);
    return run_search(arena, &now, &chosen, folder);
}

int command_resume(const struct settings *settings, const char *const *arguments, size_t count)
{
    ARENA_LOCAL(arena);
    MEM_LOCAL char *folder = control_folder(settings);
    struct run_record run;
    struct err err = {0};
    int code;
    if (control_find(settings, arena, folder, count ? arguments[0] : NULL, true, &run, &err))
        code = command_fail(&err);
    else if (control_is_live(folder, &run))
        code = wake(settings, folder, &run);
    else
        code = go_on(settings, arena, folder, &run);
    return code;
}
