/* twagent list [runs | problems | candidates RUN] */
#include "cli/archive/list.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/find/control.h"
#include "cli/find/find.h"
#include "cli/find/history.h"
#include "cli/options/command.h"
#include "cli/print/print.h"
#include "cli/print/run_words.h"
#include "eval/problem/problem.h"
#include "report/words.h"

#include <stdio.h>
#include <string.h>

static const char *speedup_words(double ratio, double low, double high, char text[40])
{
    char number[32];
    snprintf(text, 40, "%.30s%s", ratio > 0 ? words_ratio(ratio, low, high, number) : "-",
             ratio > 0 ? "x" : "");
    return text;
}

/* How a run stands, and whether it waits for somebody to go on with it. */
static const char *state_of(const struct run_record *run, pid_t owner, bool *waits)
{
    bool live = strcmp(run->state, "running") == 0, died = live && owner != run->pid;
    *waits = died || (live ? *run->paused != '\0' : run_can_go_on(run));
    return died ? "died" : live && *run->paused ? "paused" : run->state;
}

struct run_line list_line(const struct run_record *run, pid_t owner)
{
    struct run_line line = {.run = run};
    char caveats[160];
    line.state = state_of(run, owner, &line.waits);
    words_date(run->started_ms, line.started);
    words_time_by(run->time_ns, run->speedup, run->speedup_low, run->speedup_high, line.time);
    speedup_words(run->speedup, run->speedup_low, run->speedup_high, line.speedup);
    snprintf(line.verdict, sizeof line.verdict, "%s%s",
             run->win        ? "win"
             : run->verified ? "no win"
                             : "",
             words_caveats(run->unfit, run->unconfined, caveats));
    return line;
}

static int list_runs(const struct settings *settings, struct store *store, struct arena *arena,
                     struct buf *out, struct err *err)
{
    struct run_record *runs;
    size_t count;
    MEM_LOCAL char *folder = control_folder(settings);
    pid_t owner = control_owner(folder);
    if (history_runs(store, arena, &runs, &count, err))
        return -1;
    size_t most = settings->json || settings->last <= 0 ? count : (size_t)settings->last;
    const char *last = NULL;
    BUF_LOCAL(waiting, 1 << 20);
    int ids = 3, names = 7; /* as wide as the widest of them, so that 80 columns hold the rest */
    for (size_t i = count > most ? count - most : 0; i < count; i++) {
        ids = strlen(runs[i].id) > (size_t)ids ? (int)strlen(runs[i].id) : ids;
        int shown = (int)strlen(find_shown_name(arena, &runs[i], runs, count));
        names = shown > names ? shown : names;
    }
    if (count == 0 && !settings->json)
        buf_add_text(out, "no runs yet; begin with: twagent run conv2d\n");
    else if (!settings->json)
        buf_addf(out, "%-*s %-16s %-*s %-7s %9s %8s %5s %s\n", ids, "run", "started", names,
                 "problem", "state", "best", "speed-up", "evals", "kernel");
    for (size_t i = count > most ? count - most : 0; i < count; i++) {
        const struct run_record *run = &runs[i];
        if (settings->json) {
            buf_add_text(out, i ? ",\n " : "");
            run_record_encode(run, out);
            continue;
        }
        const struct run_line line = list_line(run, owner);
        bool apart = *line.verdict && *line.verdict != ';';
        buf_addf(out, "%-*s %-16s %-*s %-7s %9s %8s %5lld %s%s%s\n", ids, run->id, line.started,
                 names, find_shown_name(arena, run, runs, count), line.state, line.time,
                 line.speedup, (long long)run->evaluated, run->best, apart ? " " : "",
                 line.verdict);
        if (line.waits) {
            buf_addf(&waiting, "%s%s", waiting.length ? ", " : "", run->id);
            const char *larger = run_words_resume(arena, run);
            last = larger ? larger : arena_printf(arena, "twagent resume %s", run->id);
        }
    }
    if (last)
        buf_addf(out, "can go on: %s (%s)\n", buf_text(&waiting), last);
    if (!settings->json && count > most)
        buf_addf(out, "the last %zu of %zu; all: twagent list --last 0\n", most, count);
    return 0;
}

static int list_candidates(const struct settings *settings, struct store *store,
                           struct arena *arena, const char *run, struct buf *out, struct err *err)
{
    struct candidate_record *items;
    struct run_record record;
    size_t count;
    char time[32], caveats[160], speedup[40];
    if (history_run(store, arena, run, &record, err) ||
        history_candidates(store, arena, run, &items, &count, err))
        return -1;
    for (size_t i = 0; i < count; i++) {
        const struct candidate_record *c = &items[i];
        if (settings->json) {
            buf_add_text(out, i ? ",\n " : "");
            candidate_record_encode(c, out);
            continue;
        }
        if (i == 0)
            buf_addf(out, "%-9s %-9s %10s %9s  %s (as the search measured them%s)\n", "candidate",
                     "state", "time", "speed-up", "source",
                     words_caveats(record.unfit, record.unconfined, caveats));
        const char *tune = run_words_tune(arena, c, ",");
        buf_addf(out, "%-9s %-9s %10s %9s  %s%s%s%s%s%s%s\n", c->id, c->state,
                 words_time_by(c->time_ns, c->speedup, c->speedup_low, c->speedup_high, time),
                 speedup_words(c->speedup, c->speedup_low, c->speedup_high, speedup), c->name,
                 *tune ? " " : "", tune, *c->reason ? "  " : "", c->reason,
                 *c->duplicate_of ? "  same as " : "", c->duplicate_of);
    }
    return 0;
}

static void put_problem(const struct settings *settings, const char *name, size_t index,
                        struct buf *out)
{
    struct problem *problem;
    struct json json;
    struct err err;
    enum { NAMES = 21 }; /* as wide as the longest that ships */
    if (problem_load(name, &problem, &err)) {
        buf_addf(out, "%s%-*s %s\n", settings->json && index ? ",\n " : "", NAMES, name,
                 err.message);
        return;
    }
    if (settings->json) {
        buf_add_text(out, index ? ",\n " : "");
        json_init(&json, out);
        json_object(&json);
        json_put_text(&json, "name", name);
        json_put_text(&json, "description", problem->description);
        json_put_text(&json, "file", problem->file);
        json_object_end(&json);
    } else {
        const char *text = problem->description ? problem->description : "";
        const char *stop = strstr(text, ". "); /* a list has room for the first sentence */
        size_t length = stop ? (size_t)(stop - text) : strcspn(text, "\n");
        buf_addf(out, "%-*s %.*s\n", NAMES, name, (int)length, text);
    }
    problem_free(problem);
}

static int list_problems(const struct settings *settings, struct arena *arena, struct buf *out,
                         struct err *err)
{
    size_t count;
    const char *const *names = find_shipped(arena, &count);
    for (size_t i = 0; names && i < count; i++)
        put_problem(settings, names[i], i, out);
    return names ? 0 : err_set(err, ERR_ENVIRONMENT, "the shipped problems are not installed");
}

int command_list(const struct settings *settings, const char *const *arguments, size_t count)
{
    const char *what = count ? arguments[0] : "runs";
    struct store *store = NULL;
    struct err err = {0};
    int failed;
    bool candidates = strcmp(what, "candidates") == 0 && count == 2;
    bool problems = strcmp(what, "problems") == 0;
    if (!candidates && (count > 1 || (!problems && strcmp(what, "runs") != 0))) {
        const char *run = count > 1 ? arguments[1] : what; /* as "r3" is, most likely */
        fprintf(
            stderr,
            "twagent: list: expected runs, problems or candidates RUN, not \"%s%s%s\" (of a run: "
            "twagent show %s, twagent list candidates %s)\n",
            what, count > 1 ? " " : "", count > 1 ? run : "", run, run);
        return EXIT_USAGE;
    }
    ARENA_LOCAL(arena);
    BUF_LOCAL(text, (size_t)256 << 20);
    if (settings->json)
        buf_add_text(&text, "[");
    if (problems) {
        failed = list_problems(settings, arena, &text, &err);
    } else if ((failed = history_open(settings, &store, &err)) == 0) {
        failed = candidates ? list_candidates(settings, store, arena, arguments[1], &text, &err)
                            : list_runs(settings, store, arena, &text, &err);
    } else if (err.code == ERR_NOT_FOUND && !candidates) {
        buf_add_text(&text, settings->json ? "" : "no runs yet; begin with: twagent run conv2d\n");
        failed = 0;
    }
    if (failed && candidates && err.code == ERR_NOT_FOUND)
        failed = find_no_id(settings, store, arena, arguments[1], &err);
    if (settings->json)
        buf_add_text(&text, "]\n");
    if (!failed)
        print_lines(buf_text(&text), settings->json);
    store_close(store);
    return failed ? command_fail(&err) : 0;
}
