#include "cli/status/facts.h"

#include "base/clock.h"
#include "base/json.h"
#include "cli/tune/facts.h"
#include "report/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

enum { EVENTS_SHOWN = 8, ROWS_MOST = 256 };

/* ---- in words ---- */

static void put(struct run_status *status, const char *name, const char *text)
{
    if (text && status->row_count < ROWS_MOST)
        status->rows[status->row_count++] = (struct status_row){name, text};
}

static const char *state_words(struct arena *arena, const struct run_status *status)
{
    const struct run_record *run = &status->run;
    char when[96];
    if (!status->live && strcmp(run->state, "running") == 0)
        return "died: its process is gone";
    if (!status->live)
        return arena_printf(arena, "%s: %s", run->state, run_words_end(arena, run));
    if (!*run->paused)
        return arena_printf(arena, "running, process %lld", (long long)run->pid);
    if (status->pause_count > 0)
        return arena_printf(arena, "PAUSED %s: %s",
                            words_pause(status->pauses[status->pause_count - 1].since_ms, 0, when),
                            run->paused);
    return arena_printf(arena, "PAUSED: %s", run->paused);
}

static void put_work(struct arena *arena, struct run_status *status)
{
    const struct run_record *run = &status->run;
    char time[32], number[48], answers[48], outcomes[160], lane[80];
    bool awaits = status->live && run->awaited > 0;
    long long rounds = value_int(status->options, "rounds", 0);
    bool endless = *value_text(status->options, "kernel", "") != '\0'; /* a tune ends by itself */
    put(status, "round",
        arena_printf(arena, "%lld%s%s%s%s%s%s", (long long)run->round,
                     endless ? "" : arena_printf(arena, " of %lld", rounds),
                     status->live ? "; " : "",
                     status->live ? words_number(run->in_flight, "candidate", number) : "",
                     status->live ? " on the way" : "", awaits ? ", " : "",
                     awaits ? arena_printf(arena, "%s awaited",
                                           words_number(run->awaited, "answer", answers))
                            : ""));
    put(status, "evaluated",
        arena_printf(arena, "%lld: %s; %s", (long long)run->evaluated,
                     words_outcomes(run->kept, run->rejected, run->failed, run->dropped,
                                    run->outside, outcomes),
                     words_lane(run->lane_busy, run->lane_waits, lane)));
    if (status->live && *run->agents)
        put(status, "agents", run->agents);
    if (status->live && *run->batches)
        put(status, "batches", run->batches);
    if (*run->best)
        put(status, "best",
            arena_printf(arena, "%s  %s  %s", run->best,
                         words_time_by(run->time_ns, run->speedup, run->speedup_low,
                                       run->speedup_high, time),
                         run_words_outcome(arena, run)));
}

static void put_asking(struct arena *arena, struct run_status *status)
{
    const struct run_record *run = &status->run;
    const struct spending *spending = &status->spending;
    char most[64], tokens[32], time[32];
    put(status, "models", run_words_models(arena, run));
    put(status, "spent", run_words_spent(arena, run, spending));
    if (status->live && spending->reserved_tokens > 0)
        put(status, "reserved",
            arena_printf(arena, "at most %s tokens%s%s, for requests on their way",
                         words_count(spending->reserved_tokens, tokens),
                         spending->reserved_micro_dollars > 0 ? ", " : "",
                         spending->reserved_micro_dollars > 0
                             ? words_dollars(spending->reserved_micro_dollars, most)
                             : ""));
    const char **asked;
    size_t asked_count = run_words_asked(arena, run, &asked);
    for (size_t i = 0; i < asked_count; i++)
        put(status, i ? "" : "asked", asked[i]);
    for (size_t i = 0; i < status->tail.provider_count && status->live; i++) {
        const struct log_line *line = &status->tail.providers[i];
        put(status, "provider",
            arena_printf(arena, "%s since %s: %s",
                         strcmp(line->kind, "provider.breaker_open") == 0 ? "breaker open"
                                                                          : line->kind + 9,
                         log_tail_clock(line->wall, time), line->text));
    }
}

static void put_time(struct arena *arena, struct run_status *status)
{
    const struct run_record *run = &status->run;
    char elapsed[32], left[48], end[32];
    struct buf out;
    int64_t cap = value_int(status->options, "budget_ms", 0);
    buf_init(&out, 512);
    buf_add_text(&out, words_duration(run->elapsed_ms + status->since_ms, elapsed));
    if (cap > 0)
        buf_addf(&out, " of %s", words_duration((double)cap, elapsed));
    double left_ms = fmax(0, run->left_ms - status->since_ms);
    if (status->live && run->left_ms >= 0 && !*run->paused)
        buf_addf(&out, ", about %s left: until %s", words_duration(left_ms, left),
                 words_clock(clock_wall_ms() + (uint64_t)left_ms, end));
    if (run->resumes > 0)
        buf_addf(&out, "; resumed %s", words_number(run->resumes, "time", left));
    put(status, "time", buf_keep(&out, arena));
}

void status_seen_init(struct status_seen *seen)
{
    *seen = (struct status_seen){.timed = -1};
    buf_init(&seen->impact, 1 << 16);
}

void status_seen_free(struct status_seen *seen)
{
    buf_free(&seen->impact);
}

static void put_impact(struct store *store, struct arena *arena, struct status_seen *seen,
                       struct run_status *status)
{
    const struct run_record *run = &status->run;
    struct tuning tuning;
    struct err ignored;
    if (!tune_is(run))
        return;
    bool same = strcmp(seen->run, run->id) == 0;
    int64_t timed = run->kept + run->dropped;
    if (!same || timed < seen->timed || timed * 8 > seen->timed * 9 ||
        (!status->live && timed != seen->timed)) {
        snprintf(seen->run, sizeof seen->run, "%s", run->id);
        seen->timed = timed;
        buf_reset(&seen->impact);
        bool spec = strstr(run->problem_file, "/spec.yaml") != NULL; /* no Python for a look */
        if (tune_facts(store, arena, run, spec, &tuning, &ignored) == 0)
            for (size_t i = 0; i < tuning.kernel_count; i++) {
                report_impact_words(&tuning.kernels[i], &seen->impact);
                buf_add_char(&seen->impact, '\n');
            }
    }
    const char *name = "impact";
    for (const char *at = buf_text(&seen->impact); *at; name = "") {
        size_t length = strcspn(at, "\n");
        put(status, name, arena_strndup(arena, at, length));
        at += length + (at[length] == '\n');
    }
}

static void put_rows(struct store *store, struct arena *arena, struct status_seen *seen,
                     struct run_status *status)
{
    char when[96];
    const struct run_record *run = &status->run;
    status->rows = arena_array(arena, ROWS_MOST, sizeof *status->rows);
    put_work(arena, status);
    put_impact(store, arena, seen, status);
    put_asking(arena, status);
    put_time(arena, status);
    for (size_t i = 0; i < status->pause_count; i++) {
        const struct report_pause *pause = &status->pauses[i];
        if (pause->until_ms || !status->live)
            put(status, "paused",
                arena_printf(arena, "%s: %s", words_pause(pause->since_ms, pause->until_ms, when),
                             pause->reason));
    }
    put(status, "go on",
        !status->live               ? run_words_resume(arena, run)
        : !*run->paused             ? NULL
        : run_paused_by_person(run) ? arena_printf(arena, "twagent resume %s", run->id)
                                    : "by itself, once that is over");
}

/* ---- read ---- */

/* On a full disk a run cannot write that it waits: its record is old, and the disk says why. */
static const char *full_disk(struct arena *arena, const char *folder, double since_ms)
{
    enum { OLD_MS = 10000, ROOM_MIB = 1 }; /* a run that can writes every five seconds */
    struct statvfs disk;
    if (since_ms < OLD_MS || statvfs(folder, &disk) != 0 ||
        (unsigned long long)disk.f_bavail * disk.f_frsize >> 20 >= ROOM_MIB)
        return "";
    return arena_printf(
        arena, "the disk of %s is full, and the run waits for room: nothing is lost", folder);
}

int run_status_read(const struct settings *settings, struct arena *arena, const char *folder,
                    const char *id, struct status_seen *seen, struct run_status *status,
                    struct err *err)
{
    struct store *store = NULL;
    struct value *parsed;
    struct run_record *run = &status->run;
    memset(status, 0, sizeof *status);
    if (control_find(settings, arena, folder, id, true, run, err) ||
        history_open(settings, &store, err))
        return -1;
    status->live = control_is_live(folder, run);
    uint64_t now = clock_wall_ms();
    if (status->live && run->saved_ms > 0 && now > run->saved_ms)
        status->since_ms = (double)(now - run->saved_ms);
    if (status->live && !*run->paused)
        run->paused = full_disk(arena, folder, status->since_ms);
    status->spending = run_spending(store, arena, run->id);
    status->tail =
        log_tail_read(arena, arena_printf(arena, "%s/logs/%s.log", folder, run->id), EVENTS_SHOWN);
    history_pauses(arena, run, &status->pauses, &status->pause_count);
    if (value_parse_json(arena, run->id, run->options, strlen(run->options), &parsed, NULL) == 0)
        status->options = parsed;
    if (value_parse_json(arena, run->id, run->asked, strlen(run->asked), &parsed, NULL) == 0)
        status->asked = value_get(parsed, "list");
    bool goes_on = strcmp(run->state, "running") == 0;
    status->state = !status->live && goes_on       ? "died"
                    : status->live && *run->paused ? "paused"
                                                   : run->state;
    status->words = state_words(arena, status);
    put_rows(store, arena, seen, status);
    store_close(store);
    return 0;
}

/* ---- for programs ---- */

static void put_log_lines(struct json *json, const char *key, const struct log_line *lines,
                          size_t count)
{
    json_put_array(json, key);
    for (size_t i = 0; i < count; i++) {
        json_object(json);
        json_put_text(json, "wall", lines[i].wall);
        json_put_text(json, "level", lines[i].level);
        json_put_text(json, "kind", lines[i].kind);
        json_put_text(json, "text", lines[i].text);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_words(struct json *json, const struct run_status *status)
{
    json_put_text(json, "state", status->state);
    json_put_text(json, "words", status->words);
    json_put_array(json, "rows");
    for (size_t i = 0; i < status->row_count; i++) {
        json_array(json);
        json_text(json, status->rows[i].name);
        json_text(json, status->rows[i].text);
        json_array_end(json);
    }
    json_array_end(json);
}

void run_status_json(const struct run_status *status, struct buf *out)
{
    BUF_LOCAL(record, 4 << 20);
    const struct spending *spending = &status->spending;
    run_record_encode(&status->run, &record);
    struct json json = {.out = out};
    json_object(&json);
    json_put_raw(&json, "run", buf_text(&record));
    json_put_bool(&json, "live", status->live);
    put_words(&json, status);
    json_put_object(&json, "spending");
    json_put_int(&json, "answers", spending->answers);
    json_put_int(&json, "tokens", spending->tokens);
    json_put_int(&json, "micro_dollars", spending->micro_dollars);
    json_put_int(&json, "reserved_tokens", spending->reserved_tokens);
    json_put_int(&json, "reserved_micro_dollars", spending->reserved_micro_dollars);
    json_object_end(&json);
    put_log_lines(&json, "providers", status->tail.providers, status->tail.provider_count);
    put_log_lines(&json, "events", status->tail.lines, status->tail.count);
    json_object_end(&json);
    buf_add_char(out, '\n');
}
