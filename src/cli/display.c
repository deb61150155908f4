#include "cli/display.h"

#include "base/log.h"
#include "report/report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void display_start(struct display *display, FILE *out, bool quiet, bool verbose)
{
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    *display = (struct display){.out = out, .quiet = quiet || verbose};
    display->terminal = isatty(fileno(out)) && term && strcmp(term, "dumb") != 0 && !verbose;
    display->color = display->terminal && !(no_color && *no_color);
    if (verbose) {
        log_add_sink(log_sink_lines, out, LOG_DEBUG);
        display->sink = true;
    }
}

static void erase(struct display *display)
{
    for (; display->lines > 0; display->lines--)
        fputs("\033[A\033[2K", display->out);
    if (display->terminal)
        fputs("\r", display->out);
}

/* "1:05", "2:13:07". */
static const char *clock_text(double ms, char text[32])
{
    long seconds = (long)(ms / 1000);
    if (seconds >= 3600)
        snprintf(text, 32, "%ld:%02ld:%02ld", seconds / 3600, seconds / 60 % 60, seconds % 60);
    else
        snprintf(text, 32, "%ld:%02ld", seconds / 60, seconds % 60);
    return text;
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

static void draw(struct display *display, const struct search_progress *p)
{
    char line[512], elapsed[32], left[32], time[32];
    erase(display);
    clock_text(p->elapsed_ms, elapsed);
    if (p->left_ms >= 0)
        snprintf(line, sizeof line, "%s  %s  %s elapsed, about %s left", p->run, p->phase, elapsed,
                 clock_text(p->left_ms, left));
    else
        snprintf(line, sizeof line, "%s  %s  %s elapsed", p->run, p->phase, elapsed);
    draw_line(display, line);
    snprintf(line, sizeof line,
             "round %lld of %lld | %lld in flight | %lld evaluated: %lld kernels, %lld rejected, "
             "%lld failed | lane busy %.0f %%",
             (long long)p->round, (long long)p->rounds, (long long)p->in_flight,
             (long long)p->evaluated, (long long)p->kept, (long long)p->rejected,
             (long long)p->failed, 100 * p->lane_busy);
    draw_line(display, line);
    if (p->best && *p->best) {
        snprintf(line, sizeof line, "best %s  %s  %.3fx %s (at least %.3fx)", p->best,
                 report_time(p->best_time_ns, time), p->best_speedup, p->baseline,
                 p->best_speedup_low);
        draw_line(display, line);
    }
    fflush(display->out);
}

/* The lines that stay: a new champion, a new round, a new phase. */
static void tell(struct display *display, const struct search_progress *p)
{
    char elapsed[32], time[32];
    bool news_best = p->best && *p->best && strcmp(p->best, display->best) != 0;
    bool news_round = p->round != display->round && !display->terminal;
    bool news_phase = p->phase && strcmp(p->phase, display->phase) != 0 && !display->terminal;
    if (!news_best && !news_round && !news_phase)
        return;
    erase(display);
    clock_text(p->elapsed_ms, elapsed);
    if (news_phase && strcmp(p->phase, "done") != 0)
        fprintf(display->out, "%6s  %s\n", elapsed, p->phase);
    if (news_round && p->round > 0)
        fprintf(display->out, "%6s  round %lld of %lld; %lld evaluated so far\n", elapsed,
                (long long)p->round, (long long)p->rounds, (long long)p->evaluated);
    if (news_best)
        fprintf(display->out, "%6s  %s%-8s%s %s  %.3fx %s (95%%: at least %.3fx)\n", elapsed,
                display->color ? "\033[1m" : "", p->best, display->color ? "\033[0m" : "",
                report_time(p->best_time_ns, time), p->best_speedup, p->baseline,
                p->best_speedup_low);
    snprintf(display->best, sizeof display->best, "%s", p->best ? p->best : "");
    snprintf(display->phase, sizeof display->phase, "%s", p->phase ? p->phase : "");
    display->round = p->round;
    fflush(display->out);
}

void display_update(struct display *display, const struct search_progress *progress)
{
    if (display->quiet || !progress->run)
        return;
    if (!display->terminal)
        display->lines = 0;
    tell(display, progress);
    if (display->terminal)
        draw(display, progress);
}

void display_stop(struct display *display)
{
    if (display->terminal)
        erase(display);
    fflush(display->out);
    if (display->sink)
        log_remove_sink(log_sink_lines, display->out);
}
