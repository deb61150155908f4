#include "cli/print/display.h"

#include "base/clock.h"
#include "base/log.h"
#include "cli/print/print.h"
#include "report/words.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NOTE_EVERY_MS = 60000 };

/* A lane that waits for another twagent looks like one that hangs: it is said, though not each
 * time. */
static void note(void *context, const struct event *event)
{
    struct display *display = context;
    if (strcmp(event->kind, "provider.unsure") == 0)
        snprintf(display->note, sizeof display->note, "        not sure of %s: %s", event->subject,
                 event->message);
    if (strcmp(event->kind, "lane.unconfined") == 0 || strcmp(event->kind, "batch.late") == 0 ||
        strcmp(event->kind, "run.short") == 0)
        snprintf(display->warning, sizeof display->warning, "        %s", event->message);
    bool told = display->noted_ms > 0 && event->wall_ms < display->noted_ms + NOTE_EVERY_MS;
    if (strcmp(event->kind, "lane.waits") != 0 || told)
        return;
    display->noted_ms = event->wall_ms;
    snprintf(display->note, sizeof display->note, "        waiting: %s", event->message);
}

static void note_at_once(void *context, const struct event *event)
{
    static uint64_t told_ms;
    const char *over = print_draws(fileno(context)) ? "\r\033[K" : ""; /* what says what goes on */
    if (strcmp(event->kind, "lane.unconfined") == 0)
        fprintf(context, "%s%s\n", over, event->message);
    bool again = told_ms == 0 || event->wall_ms >= told_ms + NOTE_EVERY_MS;
    if (strcmp(event->kind, "lane.waits") != 0 || !again)
        return;
    told_ms = event->wall_ms;
    fprintf(context, "%swaiting: %s\n", over, event->message);
    fflush(context);
}

void display_tell_waits(FILE *out)
{
    log_add_sink(note_at_once, out, LOG_WARN);
}

void display_start(struct display *display, FILE *out, const struct search_options *options,
                   bool quiet, bool verbose)
{
    *display = (struct display){.out = out, .options = options, .quiet = quiet || verbose};
    display->terminal = print_draws(fileno(out)) && !verbose;
    display->color = display->terminal && print_colours(fileno(out));
    if (verbose) {
        log_add_sink(log_sink_lines, out, LOG_DEBUG);
        display->sink = true;
    }
    log_add_sink(note, display, LOG_WARN);
}

static void erase(struct display *display)
{
    if (!display->terminal)
        display->lines = 0;
    for (; display->lines > 0; display->lines--)
        fputs("\033[A\033[2K", display->out);
    if (display->terminal)
        fputs("\r", display->out);
}

/* One line, cut to the terminal's width: a wrapped line could not be erased. */
static void draw_line(struct display *display, const char *text)
{
    struct winsize size = {0};
    int width =
        ioctl(fileno(display->out), TIOCGWINSZ, &size) == 0 && size.ws_col > 8 ? size.ws_col : 80;
    fprintf(display->out, "%.*s\n", width - 1, text);
    display->lines++;
}

/* ---- the live lines ---- */

/* "$1.23 of $5.00, 1.2 M of 5 M tokens; 312 answers, 8 requests in flight"; "": nothing was asked.
 */
static const char *display_spending(const struct search_progress *p,
                                    const struct search_options *options, char text[256])
{
    char tokens[32], most[40] = "", spent[64], awaited[48], number[48], flight[48], more[64] = "";
    int64_t cap = options->budget_micro_dollars;
    int64_t answers = p->spent.settled + p->spent.charged;
    text[0] = '\0';
    if (p->spent.tokens == 0 && p->spent.reserved_tokens == 0 && p->requests_in_flight == 0 &&
        p->awaited == 0)
        return text;
    if (options->budget_tokens > 0) {
        strcpy(most, " of ");
        words_count(options->budget_tokens, most + 4);
    }
    if (p->awaited > 0)
        snprintf(more, sizeof more, ", %s awaited", words_number(p->awaited, "answer", awaited));
    snprintf(text, 256, "%s, %s%s tokens; %s, %s in flight%s",
             words_spent(p->spent.micro_dollars, cap, p->spent.unpriced, spent),
             words_count(p->spent.tokens, tokens), most, words_number(answers, "answer", number),
             words_number(p->requests_in_flight, "request", flight), more);
    return text;
}

static void draw_head(struct display *display, const struct search_progress *p)
{
    char line[512], elapsed[32], left[32], end[32];
    uint64_t now = clock_wall_ms();
    words_duration(p->elapsed_ms, elapsed);
    if (p->left_ms >= 0 && !p->paused)
        snprintf(line, sizeof line, "%s  %s  %s elapsed, about %s left (%s)", p->run, p->phase,
                 elapsed, words_duration(p->left_ms, left),
                 words_clock(now + (uint64_t)p->left_ms, end));
    else
        snprintf(line, sizeof line, "%s  %s  %s elapsed", p->run, p->phase, elapsed);
    draw_line(display, line);
}

/* What there is none of is left out, so that 80 columns hold it. */
static void put_counts(const struct search_progress *p, bool tunes, char line[512])
{
    char kept[48], rejected[40] = "", failed[40] = "", dropped[40] = "", outside[40] = "", lane[80],
                   round[64] = "";
    if (!tunes)
        snprintf(round, sizeof round, "round %lld of %lld | ", (long long)p->round,
                 (long long)p->rounds);
    if (p->rejected > 0)
        snprintf(rejected, sizeof rejected, ", %lld rejected", (long long)p->rejected);
    if (p->failed > 0)
        snprintf(failed, sizeof failed, ", %lld failed", (long long)p->failed);
    if (p->dropped > 0)
        snprintf(dropped, sizeof dropped, ", %lld dropped", (long long)p->dropped);
    if (p->outside > 0)
        snprintf(outside, sizeof outside, ", %lld no point", (long long)p->outside);
    snprintf(line, 512, "%s%lld in flight | %lld evaluated: %s%s%s%s%s | %s", round,
             (long long)p->in_flight, (long long)p->evaluated,
             words_number(p->kept, "kernel", kept), rejected, failed, dropped, outside,
             words_lane(p->lane_busy, p->lane_waits, lane));
}

/* "1.97x reference (95 %: at least 1.95x)" */
static const char *best_words(const struct search_progress *p, char text[128])
{
    char ratio[32], least[32];
    double low = p->best_speedup_low, high = p->best_speedup_high;
    snprintf(text, 128, "%sx %.40s (95 %%: at least %sx)",
             words_ratio(p->best_speedup, low, high, ratio), p->baseline,
             words_ratio(low, low, high, least));
    return text;
}

static void draw(struct display *display, const struct search_progress *p)
{
    char line[512], time[32], spending[256], since[32], length[32], caveats[160], best[128];
    erase(display);
    draw_head(display, p);
    if (*display->paused) {
        uint64_t now = clock_wall_ms();
        snprintf(line, sizeof line, "PAUSED since %s (%s): %s",
                 words_clock(display->paused_ms, since),
                 words_duration(now > display->paused_ms ? (double)(now - display->paused_ms) : 0,
                                length),
                 display->paused);
        if (display->color)
            fputs("\033[1;33m", display->out);
        draw_line(display, line);
        if (display->color)
            fputs("\033[0m", display->out);
    }
    put_counts(p, display->options->kernel != NULL, line);
    draw_line(display, line);
    if (*display_spending(p, display->options, spending)) {
        snprintf(line, sizeof line, "spent %s", spending);
        draw_line(display, line);
    }
    if (p->best && *p->best) {
        snprintf(line, sizeof line, "best %s  %s  %s%s", p->best,
                 words_time_by(p->best_time_ns, p->best_speedup, p->best_speedup_low,
                               p->best_speedup_high, time),
                 best_words(p, best), words_caveats(p->unfit, p->unconfined, caveats));
        draw_line(display, line);
    }
    fflush(display->out);
}

/* ---- the lines that stay ---- */

void display_say(struct display *display, const char *text)
{
    if (display->quiet)
        return;
    erase(display);
    fprintf(display->out, "%s\n", text);
    fflush(display->out);
}

void display_wait(struct display *display, const char *text)
{
    if (display->quiet || !display->terminal)
        return;
    erase(display);
    draw_line(display, text);
    fflush(display->out);
}

static void tell_pause(struct display *display, const struct search_progress *p)
{
    char when[96], line[512];
    const char *why = p->paused ? p->paused : "";
    bool was = *display->paused != '\0', is = *why != '\0';
    if (was && !is && p->stopped) {
        display->paused[0] = '\0'; /* it ends, and does not go on */
        return;
    }
    if (was && !is) {
        words_pause(display->paused_ms, clock_wall_ms(), when);
        snprintf(line, sizeof line, "goes on; it was paused %s: %s", when, display->paused);
        display_say(display, line);
    } else if (is && !was) {
        display->paused_ms = clock_wall_ms();
        words_pause(display->paused_ms, 0, when);
        snprintf(line, sizeof line, "paused %s: %s", when, why);
        display_say(display, line);
    }
    snprintf(display->paused, sizeof display->paused, "%s", why);
}

/* A new champion, a new round, a new phase. */
static void tell(struct display *display, const struct search_progress *p)
{
    char elapsed[32], time[32], caveats[160], best[128];
    bool news_best = p->best && *p->best && strcmp(p->best, display->best) != 0;
    bool news_round = p->round != display->round && !display->terminal && !display->options->kernel;
    bool news_phase = p->phase && strcmp(p->phase, display->phase) != 0 && !display->terminal;
    bool searching =
        !p->phase || (strcmp(p->phase, "closing") != 0 && strcmp(p->phase, "done") != 0);
    if (!news_best && !news_round && !news_phase)
        return;
    erase(display);
    words_duration(p->elapsed_ms, elapsed);
    if (news_phase && strcmp(p->phase, "done") != 0)
        fprintf(display->out, "%6s  %s\n", elapsed, p->phase);
    if (news_round && p->round > 0)
        fprintf(display->out, "%6s  round %lld of %lld; %lld evaluated so far\n", elapsed,
                (long long)p->round, (long long)p->rounds, (long long)p->evaluated);
    if (news_best)
        fprintf(display->out, "%6s  %s%-8s%s %s  %s%s%s\n", elapsed,
                display->color ? "\033[1m" : "", p->best, display->color ? "\033[0m" : "",
                words_time_by(p->best_time_ns, p->best_speedup, p->best_speedup_low,
                              p->best_speedup_high, time),
                best_words(p, best), searching ? "" : ", final",
                words_caveats(p->unfit, p->unconfined, caveats));
    snprintf(display->best, sizeof display->best, "%s", p->best ? p->best : "");
    snprintf(display->phase, sizeof display->phase, "%s", p->phase ? p->phase : "");
    display->round = p->round;
    fflush(display->out);
}

void display_update(struct display *display, const struct search_progress *progress)
{
    if (display->quiet || !progress->run)
        return;
    tell(display, progress);
    tell_pause(display, progress);
    if (*display->warning && strcmp(display->warning, display->warned) != 0)
        display_say(display, display->warning);
    if (*display->warning) /* each lane has it */
        strcpy(display->warned, display->warning);
    display->warning[0] = '\0';
    if (*display->note)
        display_say(display, display->note);
    display->note[0] = '\0';
    if (display->terminal)
        draw(display, progress);
}

void display_stop(struct display *display)
{
    if (display->terminal)
        erase(display);
    fflush(display->out);
    log_remove_sink(note, display);
    if (display->sink)
        log_remove_sink(log_sink_lines, display->out);
}
