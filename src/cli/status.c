/* twagent status [RUN]: where a run stands, seen from another terminal: its record, its ledger and
 * the end of its log. Nothing is asked of the run itself. */
#include "base/clock.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/control.h"
#include "cli/history.h"
#include "cli/log_tail.h"
#include "cli/print.h"
#include "cli/run_words.h"
#include "report/words.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { EVENTS_SHOWN = 8, REDRAW_MS = 1000 };

struct status { /* one look; everything in the arena */
    struct run_record run;
    bool live;
    double since_ms; /* the record was written, of a live run; that long ago it was as it says */
    struct spending spending;
    struct log_tail tail;
    struct report_pause *pauses;
    size_t pause_count;
    const struct value *options;
};

static int look(const struct settings *settings, struct arena *arena, const char *folder,
                const char *id, struct status *status, struct err *err)
{
    struct store *store = NULL;
    struct value *options;
    struct run_record *run = &status->run;
    memset(status, 0, sizeof *status);
    if (control_find(settings, arena, folder, id, true, run, err) ||
        history_open(settings, &store, err))
        return -1;
    status->live = control_is_live(folder, run);
    uint64_t now = clock_wall_ms();
    if (status->live && run->saved_ms > 0 && now > run->saved_ms)
        status->since_ms = (double)(now - run->saved_ms);
    status->spending = run_spending(store, arena, run->id);
    status->tail =
        log_tail_read(arena, arena_printf(arena, "%s/logs/%s.log", folder, run->id), EVENTS_SHOWN);
    history_pauses(arena, run, &status->pauses, &status->pause_count);
    if (value_parse_json(arena, run->id, run->options, strlen(run->options), &options, NULL) == 0)
        status->options = options;
    store_close(store);
    return 0;
}

/* ---- for people ---- */

static void put_state(struct arena *arena, const struct status *status, struct buf *out)
{
    const struct run_record *run = &status->run;
    char when[96];
    buf_addf(out, "%s  %s  ", run->id, run->problem);
    if (!status->live && strcmp(run->state, "running") == 0)
        buf_addf(out, "died: its process is gone");
    else if (!status->live)
        buf_addf(out, "%s: %s", run->state, run_words_end(arena, run));
    else if (!*run->paused)
        buf_addf(out, "running, process %lld", (long long)run->pid);
    else if (status->pause_count > 0)
        buf_addf(out, "PAUSED %s: %s",
                 words_pause(status->pauses[status->pause_count - 1].since_ms, 0, when),
                 run->paused);
    else
        buf_addf(out, "PAUSED: %s", run->paused);
    buf_add_char(out, '\n');
}

static void put_work(struct arena *arena, const struct status *status, struct buf *out)
{
    const struct run_record *run = &status->run;
    char time[32], number[48], lane[80];
    buf_addf(out, "  round      %lld of %lld", (long long)run->round,
             (long long)value_int(status->options, "rounds", 0));
    if (status->live)
        buf_addf(out, "; %s on the way", words_number(run->in_flight, "candidate", number));
    if (status->live && run->awaited > 0)
        buf_addf(out, ", %s awaited", words_number(run->awaited, "answer", number));
    buf_addf(out, "\n  evaluated  %lld: %s, %lld rejected, %lld failed; %s\n",
             (long long)run->evaluated, words_number(run->kept, "kernel", number),
             (long long)run->rejected, (long long)run->failed,
             words_lane(run->lane_busy, run->lane_waits, lane));
    if (*run->best)
        buf_addf(
            out, "  best       %s  %s  %s\n", run->best,
            words_time_by(run->time_ns, run->speedup, run->speedup_low, run->speedup_high, time),
            run_words_outcome(arena, run));
}

static void put_asking(struct arena *arena, const struct status *status, struct buf *out)
{
    const struct run_record *run = &status->run;
    const struct spending *spending = &status->spending;
    const char *models = run_words_models(arena, run);
    const char *spent = run_words_spent(arena, run, spending);
    char most[64], tokens[32], time[32];
    if (models)
        buf_addf(out, "  models     %s\n", models);
    if (spent)
        buf_addf(out, "  spent      %s\n", spent);
    if (status->live && spending->reserved_tokens > 0)
        buf_addf(out, "  reserved   at most %s tokens%s%s, for requests on their way\n",
                 words_count(spending->reserved_tokens, tokens),
                 spending->reserved_micro_dollars > 0 ? ", " : "",
                 spending->reserved_micro_dollars > 0
                     ? words_dollars(spending->reserved_micro_dollars, most)
                     : "");
    const char **asked;
    size_t asked_count = run_words_asked(arena, run, &asked);
    for (size_t i = 0; i < asked_count; i++)
        buf_addf(out, "  %s %s\n", i ? "          " : "asked     ", asked[i]);
    for (size_t i = 0; i < status->tail.provider_count && status->live; i++)
        buf_addf(out, "  provider   %s since %s: %s\n",
                 strcmp(status->tail.providers[i].kind, "provider.breaker_open") == 0
                     ? "breaker open"
                     : status->tail.providers[i].kind + 9,
                 log_tail_clock(status->tail.providers[i].wall, time),
                 status->tail.providers[i].text);
}

static void put_time(const struct status *status, struct buf *out)
{
    const struct run_record *run = &status->run;
    char elapsed[32], left[48], end[32];
    int64_t cap = value_int(status->options, "budget_ms", 0);
    buf_addf(out, "  time       %s", words_duration(run->elapsed_ms + status->since_ms, elapsed));
    if (cap > 0)
        buf_addf(out, " of %s", words_duration((double)cap, elapsed));
    double left_ms = fmax(0, run->left_ms - status->since_ms);
    if (status->live && run->left_ms >= 0 && !*run->paused)
        buf_addf(out, ", about %s left: until %s", words_duration(left_ms, left),
                 words_clock(clock_wall_ms() + (uint64_t)left_ms, end));
    if (run->resumes > 0)
        buf_addf(out, "; resumed %s", words_number(run->resumes, "time", left));
    buf_add_char(out, '\n');
}

static void put_status(struct arena *arena, const struct status *status, struct buf *out)
{
    char when[96], time[32];
    put_state(arena, status, out);
    put_work(arena, status, out);
    put_asking(arena, status, out);
    put_time(status, out);
    for (size_t i = 0; i < status->pause_count; i++)
        if (status->pauses[i].until_ms || !status->live)
            buf_addf(out, "  paused     %s: %s\n",
                     words_pause(status->pauses[i].since_ms, status->pauses[i].until_ms, when),
                     status->pauses[i].reason);
    const struct run_record *run = &status->run;
    const char *resume = !status->live   ? run_words_resume(arena, run)
                         : !*run->paused ? NULL
                         : run_paused_by_person(run)
                             ? arena_printf(arena, "twagent resume %s", run->id)
                             : "by itself, once that is over";
    if (resume)
        buf_addf(out, "  go on      %s\n", resume);
    for (size_t i = 0; i < status->tail.count; i++)
        buf_addf(out, "  %s %s%s %s\n", log_tail_clock(status->tail.lines[i].wall, time),
                 strcmp(status->tail.lines[i].level, "info") == 0 ? "" : "! ",
                 status->tail.lines[i].kind, status->tail.lines[i].text);
}

/* ---- for programs ---- */

static void put_log_lines(struct json *json, const char *key, const struct log_line *lines,
                          size_t count)
{
    json_key(json, key);
    json_array(json);
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

static void put_json(const struct status *status, struct buf *out)
{
    struct buf record;
    struct json json;
    const struct spending *spending = &status->spending;
    buf_init(&record, 4 << 20);
    run_record_encode(&status->run, &record);
    json_init(&json, out);
    json_object(&json);
    json_key(&json, "run");
    json_raw(&json, buf_text(&record));
    json_put_bool(&json, "live", status->live);
    json_key(&json, "spending");
    json_object(&json);
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
    buf_free(&record);
}

/* ---- once, or again and again ---- */

/* Lines cut to the terminal's width and height; the screen is not cleared first, so that it does
 * not flicker. */
static void draw(const char *text)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 8;
    int width = known ? size.ws_col : 80, height = known && size.ws_row > 2 ? size.ws_row : 24;
    fputs("\033[H", stdout);
    for (int row = 1; *text && row < height; row++) {
        size_t length = strcspn(text, "\n");
        printf("%.*s\033[K\n", (int)length < width ? (int)length : width - 1, text);
        text += length + (text[length] == '\n');
    }
    fputs("\033[J", stdout);
    fflush(stdout);
}

static int show(const struct settings *settings, const char *folder, const char *id, bool terminal,
                char followed[32], bool *live, struct err *err)
{
    struct arena *arena = arena_new();
    struct status status;
    struct buf text, wrapped;
    int failed = look(settings, arena, folder, id, &status, err);
    buf_init(&text, 16 << 20);
    if (!failed) {
        *live = status.live;
        snprintf(followed, 32, "%s", status.run.id);
        if (settings->json)
            put_json(&status, &text);
        else
            put_status(arena, &status, &text);
        if (terminal) {
            buf_init(&wrapped, 16 << 20);
            print_wrap(buf_text(&text), &wrapped);
            draw(buf_text(&wrapped));
            buf_free(&wrapped);
        } else {
            print_lines(buf_text(&text), settings->json);
        }
        fflush(stdout);
    }
    buf_free(&text);
    arena_free(arena);
    return failed;
}

int command_status(const struct settings *settings, const char *const *arguments, size_t count)
{
    char *folder = control_folder(settings);
    char followed[32] = "";
    const char *id = count ? arguments[0] : NULL;
    bool live = false, terminal = settings->watch && !settings->json && isatty(STDOUT_FILENO);
    struct err err = {0};
    if (terminal)
        fputs("\033[H\033[2J", stdout);
    int failed = show(settings, folder, id, terminal, followed, &live, &err);
    while (!failed && settings->watch && live && !ferror(stdout)) {
        poll(NULL, 0, REDRAW_MS);
        failed = show(settings, folder, followed, terminal, followed, &live, &err);
    }
    mem_free(folder);
    return failed ? command_fail(&err) : 0;
}
