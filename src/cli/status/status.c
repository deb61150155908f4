/* twagent status [RUN]: where a run stands, seen from another terminal: its record, its ledger and
 * the end of its log. Nothing is asked of the run itself. */
#include "base/mem.h"
#include "cli/options/command.h"
#include "cli/print/print.h"
#include "cli/status/facts.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { REDRAW_MS = 1000 };

struct watched {
    char id[32];
    bool live;
    uint64_t saved_ms;
    struct status_seen seen;
};

/* ---- for people ---- */

static void put_status(const struct run_status *status, struct buf *out)
{
    char time[32];
    buf_addf(out, "%s  %s  %s\n", status->run.id, status->run.problem, status->words);
    for (size_t i = 0; i < status->row_count; i++)
        buf_addf(out, "  %-10s %s\n", status->rows[i].name, status->rows[i].text);
    for (size_t i = 0; i < status->tail.count; i++)
        buf_addf(out, "  %s %s%s %s\n", log_tail_clock(status->tail.lines[i].wall, time),
                 strcmp(status->tail.lines[i].level, "info") == 0 ? "" : "! ",
                 status->tail.lines[i].kind, status->tail.lines[i].text);
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
                struct watched *watched, struct err *err)
{
    ARENA_LOCAL(arena);
    BUF_LOCAL(text, 16 << 20);
    BUF_LOCAL(wrapped, 16 << 20);
    struct run_status status;
    if (run_status_read(settings, arena, folder, id, &watched->seen, &status, err))
        return -1;
    bool news = !watched->live || !status.live || status.run.saved_ms != watched->saved_ms;
    watched->live = status.live;
    watched->saved_ms = status.run.saved_ms;
    snprintf(watched->id, sizeof watched->id, "%s", status.run.id);
    if (settings->metrics)
        run_status_metrics(&status, &text);
    else if (settings->json)
        run_status_json(&status, &text);
    else
        put_status(&status, &text);
    if (terminal) {
        print_wrap(buf_text(&text), &wrapped);
        draw(buf_text(&wrapped));
    } else if (news) {
        print_lines(buf_text(&text), settings->json || settings->metrics);
    }
    fflush(stdout);
    return 0;
}

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

/* Ctrl-C, or whoever ends the terminal, finds the last picture whole and the cursor below it. */
static void watch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

static int watch(const struct settings *settings, const char *folder, const char *id, bool terminal,
                 struct err *err)
{
    struct watched watched = {.live = false};
    struct store *store = NULL;
    struct err ignored;
    status_seen_init(&watched.seen);
    if (history_open(settings, &store, &ignored)) /* once: each look shares it */
        store = NULL;
    if (settings->watch)
        watch_signals();
    if (terminal)
        fputs("\033[H\033[2J", stdout);
    int failed = show(settings, folder, id, terminal, &watched, err);
    while (!failed && settings->watch && watched.live && !ferror(stdout) && !interrupted) {
        struct pollfd reader = {.fd = STDOUT_FILENO}; /* a pipe that nobody reads any more */
        if (poll(&reader, terminal ? 0 : 1, REDRAW_MS) > 0 && reader.revents & (POLLERR | POLLHUP))
            break;
        if (!interrupted)
            failed = show(settings, folder, watched.id, terminal, &watched, err);
    }
    store_close(store);
    status_seen_free(&watched.seen);
    return failed;
}

int command_status(const struct settings *settings, const char *const *arguments, size_t count)
{
    MEM_LOCAL char *folder = control_folder(settings);
    bool text = !settings->json && !settings->metrics;
    struct err err = {0};
    int failed = watch(settings, folder, count ? arguments[0] : NULL,
                       settings->watch && text && print_draws(STDOUT_FILENO), &err);
    if (interrupted) /* as the shell has it of a program that a signal ended */
        return 128 + interrupted;
    return failed ? command_fail(&err) : 0;
}
