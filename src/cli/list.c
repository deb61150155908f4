/* twagent list [runs | problems | candidates RUN] */
#include "base/mem.h"
#include "cli/command.h"
#include "cli/control.h"
#include "cli/find.h"
#include "cli/history.h"
#include "cli/run_words.h"
#include "eval/problem/problem.h"
#include "report/words.h"

#include <stdio.h>
#include <string.h>

/* Prints `encode`d records as a JSON list. */
static void print_list_item(const struct buf *text, size_t index)
{
    printf("%s%s", index ? ",\n " : "", buf_text(text));
}

static int list_runs(const struct settings *settings, struct store *store, struct arena *arena,
                     struct err *err)
{
    struct run_record *runs;
    size_t count;
    char time[32], started[32], caveats[160], ratio[32];
    char *folder = control_folder(settings);
    pid_t owner = control_owner(folder);
    mem_free(folder);
    if (history_runs(store, arena, &runs, &count, err))
        return -1;
    if (settings->json)
        printf("[");
    else if (count == 0)
        printf("no runs yet; begin with: twagent run matmul\n");
    else
        printf("%-6s %-16s %-16s %-8s %10s %9s  %-9s %s\n", "run", "started", "problem", "state",
               "best", "speed-up", "evaluated", "kernel");
    size_t most = settings->json || settings->last <= 0 ? count : (size_t)settings->last;
    for (size_t i = count > most ? count - most : 0; i < count; i++) {
        const struct run_record *run = &runs[i];
        if (settings->json) {
            struct buf text;
            buf_init(&text, 1 << 20);
            run_record_encode(run, &text);
            print_list_item(&text, i);
            buf_free(&text);
            continue;
        }
        words_date(run->started_ms, started);
        const char *mark = run->win ? " win" : run->verified ? " no win" : "";
        bool live = strcmp(run->state, "running") == 0, died = live && owner != run->pid;
        bool waits = died || (live ? *run->paused != '\0' : run_can_go_on(run));
        char speedup[32] = "-";
        if (run->speedup > 0)
            snprintf(speedup, sizeof speedup, "%.30sx",
                     words_ratio(run->speedup, run->speedup_low, run->speedup_high, ratio));
        printf("%-6s %-16s %-16s %-8s %10s %9s  %-9lld %s%s%s%s%s\n", run->id, started,
               run->problem,
               died                   ? "died"
               : live && *run->paused ? "paused"
                                      : run->state,
               words_time_by(run->time_ns, run->speedup, run->speedup_low, run->speedup_high, time),
               speedup, (long long)run->evaluated, run->best, mark,
               words_caveats(run->unfit, run->unconfined, caveats),
               waits ? "  twagent resume " : "", waits ? run->id : "");
    }
    if (settings->json)
        printf("]\n");
    else if (count > most)
        printf("the last %zu of %zu; all: twagent list --last 0\n", most, count);
    return 0;
}

static int list_candidates(const struct settings *settings, struct store *store,
                           struct arena *arena, const char *run, struct err *err)
{
    struct candidate_record *items;
    struct run_record record;
    size_t count;
    char time[32], caveats[160], ratio[32];
    if (history_run(store, arena, run, &record, err) ||
        history_candidates(store, arena, run, &items, &count, err))
        return -1;
    if (settings->json)
        printf("[");
    for (size_t i = 0; i < count; i++) {
        const struct candidate_record *c = &items[i];
        if (settings->json) {
            struct buf text;
            buf_init(&text, 1 << 20);
            candidate_record_encode(c, &text);
            print_list_item(&text, i);
            buf_free(&text);
            continue;
        }
        if (i == 0)
            printf("%-9s %-9s %10s %9s  %s (as the search measured them%s)\n", "candidate", "state",
                   "time", "speed-up", "source",
                   words_caveats(record.unfit, record.unconfined, caveats));
        char speedup[32] = "-";
        if (c->speedup > 0)
            snprintf(speedup, sizeof speedup, "%.30sx",
                     words_ratio(c->speedup, c->speedup_low, c->speedup_high, ratio));
        printf("%-9s %-9s %10s %9s  %s %s%s%s\n", c->id, c->state,
               words_time_by(c->time_ns, c->speedup, c->speedup_low, c->speedup_high, time),
               speedup, c->name, run_words_tune(arena, c, ","), *c->reason ? "  " : "", c->reason);
    }
    if (settings->json)
        printf("]\n");
    return 0;
}

static void print_problem(const struct settings *settings, const char *name, size_t index)
{
    struct problem *problem;
    struct err err;
    if (problem_load(name, &problem, &err)) {
        printf("%s%-16s %s\n", settings->json && index ? ",\n " : "", name, err.message);
        return;
    }
    if (settings->json) {
        struct buf text;
        struct json json;
        buf_init(&text, 1 << 16);
        json_init(&json, &text);
        json_object(&json);
        json_put_text(&json, "name", name);
        json_put_text(&json, "description", problem->description);
        json_put_text(&json, "file", problem->file);
        json_object_end(&json);
        print_list_item(&text, index);
        buf_free(&text);
    } else {
        const char *text = problem->description ? problem->description : "";
        const char *stop = strstr(text, ". "); /* a list has room for the first sentence */
        size_t length = stop ? (size_t)(stop - text) : strcspn(text, "\n");
        printf("%-16s %.*s\n", name, (int)length, text);
    }
    problem_free(problem);
}

static int list_problems(const struct settings *settings, struct err *err)
{
    struct arena *arena = arena_new();
    size_t count;
    const char *const *names = find_shipped(arena, &count);
    if (names && settings->json)
        printf("[");
    for (size_t i = 0; names && i < count; i++)
        print_problem(settings, names[i], i);
    if (names && settings->json)
        printf("]\n");
    arena_free(arena);
    return names ? 0 : err_set(err, ERR_ENVIRONMENT, "the shipped problems are not installed");
}

int command_list(const struct settings *settings, const char *const *arguments, size_t count)
{
    const char *what = count ? arguments[0] : "runs";
    struct store *store = NULL;
    struct err err = {0};
    bool candidates = strcmp(what, "candidates") == 0 && count == 2;
    if (strcmp(what, "problems") == 0)
        return list_problems(settings, &err) ? command_fail(&err) : 0;
    if (!candidates && strcmp(what, "runs") != 0) {
        fprintf(stderr, "twagent: list: expected runs, problems or candidates RUN, not \"%s\"\n",
                what);
        return EXIT_USAGE;
    }
    struct arena *arena = arena_new();
    int failed = history_open(settings, &store, &err);
    if (failed && err.code == ERR_NOT_FOUND && !candidates) {
        printf(settings->json ? "[]\n" : "no runs yet; begin with: twagent run matmul\n");
        failed = 0;
    } else if (!failed) {
        failed = candidates ? list_candidates(settings, store, arena, arguments[1], &err)
                            : list_runs(settings, store, arena, &err);
    }
    if (failed && candidates && err.code == ERR_NOT_FOUND)
        failed = find_no_id(settings, store, arena, arguments[1], &err);
    store_close(store);
    arena_free(arena);
    return failed ? command_fail(&err) : 0;
}
