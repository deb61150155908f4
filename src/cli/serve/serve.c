/* twagent serve: the store's runs in a browser, beside whatever goes on in it. */
#include "serve/serve.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/archive/list.h"
#include "cli/find/control.h"
#include "cli/find/history.h"
#include "cli/options/command.h"
#include "cli/options/settings.h"
#include "cli/report/fill.h"
#include "cli/serve/evaluations.h"
#include "cli/serve/list_html_text.h"
#include "cli/serve/list_js_text.h"
#include "cli/serve/page_css_text.h"
#include "cli/serve/page_js_text.h"
#include "cli/serve/run_html_text.h"
#include "cli/serve/run_js_text.h"
#include "cli/serve/site_css_text.h"
#include "cli/status/facts.h"
#include "loop/loop.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

struct site {
    const struct settings *settings;
    const char *folder;
    struct evaluations *evaluations;
    struct store *store; /* kept open, so that each look shares it; NULL: there was none yet */
    struct stat data;    /* the file that it is */
    struct status_seen seen;
};

/* ---- pool thread ---- */

/* The store may be made, moved away or restored while the server goes on. */
static void follow_store(struct site *site)
{
    struct stat now = {0};
    struct err ignored;
    MEM_LOCAL char *path = file_join(site->folder, "data.mdb");
    bool there = stat(path, &now) == 0;
    if (site->store && there && now.st_ino == site->data.st_ino && now.st_dev == site->data.st_dev)
        return;
    store_close(site->store);
    site->store = NULL;
    if (there && history_open(site->settings, &site->store, &ignored) == 0)
        site->data = now;
}

static uint64_t version(void *context)
{
    struct site *site = context;
    setpriority(PRIO_PROCESS, 0, 19); /* this thread: what is measured beside it comes first */
    follow_store(site);
    struct {
        uint64_t commit, inode, evaluations;
        int64_t owner;
    } state = {.evaluations = evaluations_version(site->evaluations),
               .commit = site->store ? store_version(site->store) : 0,
               .inode = site->store ? (uint64_t)site->data.st_ino : 0,
               .owner = control_owner(site->folder)};
    return hash_checksum(&state, sizeof state, 1);
}

static void put_line(struct json *json, const struct run_line *line)
{
    json_object(json);
    json_put_text(json, "id", line->run->id);
    json_put_text(json, "problem", line->run->problem);
    json_put_text(json, "backend", line->run->backend);
    json_put_text(json, "state", line->state);
    json_put_bool(json, "waits", line->waits);
    json_put_int(json, "started_ms", (int64_t)line->run->started_ms);
    json_put_text(json, "started", line->started);
    json_put_text(json, "best", line->run->best);
    json_put_real(json, "time_ns", line->run->time_ns);
    json_put_text(json, "time", line->time);
    json_put_text(json, "speedup", line->speedup);
    json_put_int(json, "evaluated", line->run->evaluated);
    json_put_text(json, "verdict", line->verdict);
    json_object_end(json);
}

static int put_runs(struct site *site, struct arena *arena, struct buf *out, struct err *err)
{
    struct run_record *runs = NULL;
    struct json json;
    size_t count = 0;
    pid_t owner = control_owner(site->folder);
    if (site->store && history_runs(site->store, arena, &runs, &count, err))
        return -1;
    json_init(&json, out);
    json_object(&json);
    json_put_text(&json, "folder", site->folder);
    json_put_array(&json, "runs");
    for (size_t i = count; i-- > 0;) {
        const struct run_line line = list_line(&runs[i], owner);
        put_line(&json, &line);
    }
    json_array_end(&json);
    json_object_end(&json);
    return 0;
}

static int put_status(struct site *site, struct arena *arena, const char *id,
                      void (*view)(const struct run_status *, struct buf *), struct buf *out,
                      struct err *err)
{
    struct run_status status;
    if (!site->store)
        return err_set(err, ERR_NOT_FOUND, "no runs yet");
    if (run_status_read(site->settings, arena, site->folder, id, &site->seen, &status, err)) {
        if (err->code == ERR_USAGE)
            err->code = ERR_NOT_FOUND;
        return -1;
    }
    view(&status, out);
    return 0;
}

#define FILE_OF(path, type, lines)                                                                 \
    {                                                                                              \
        path, type, lines, sizeof lines / sizeof *lines                                            \
    }
static const struct {
    const char *path, *type;
    const char *const *lines;
    size_t count;
} files[] = {
    FILE_OF("/", "text/html; charset=utf-8", list_html),
    FILE_OF("/runs/", "text/html; charset=utf-8", run_html), /* of any run */
    FILE_OF("/report.css", "text/css; charset=utf-8", page_css),
    FILE_OF("/report.js", "text/javascript; charset=utf-8", page_js),
    FILE_OF("/serve.css", "text/css; charset=utf-8", site_css),
    FILE_OF("/serve_list.js", "text/javascript; charset=utf-8", list_js),
    FILE_OF("/serve_run.js", "text/javascript; charset=utf-8", run_js),
};

static int put_file(const char *path, struct buf *out, const char **type, struct err *err)
{
    size_t i = 0, count = sizeof files / sizeof files[0];
    while (i < count && strcmp(files[i].path, path) != 0)
        i++;
    if (i == count)
        return err_set(err, ERR_NOT_FOUND, "there is no such page");
    *type = files[i].type;
    for (size_t k = 0; k < files[i].count; k++)
        buf_add_text(out, files[i].lines[k]);
    return 0;
}

/* "r12" of "/v1/runs/r12/status" where `rest` is "/status"; or NULL. */
static const char *run_of(struct arena *arena, const char *path, const char *before,
                          const char *rest)
{
    size_t start = strlen(before), length = strlen(path), end = strlen(rest);
    if (length < start + end || strncmp(path, before, start) != 0 ||
        strcmp(path + length - end, rest) != 0)
        return NULL;
    const char *id = arena_strndup(arena, path + start, length - start - end);
    size_t digits = *id == 'r' ? strspn(id + 1, "0123456789") : 0;
    return digits > 0 && digits <= 18 && id[1 + digits] == '\0' ? id : NULL;
}

/* What the report's page draws from, of a run that may go on. */
static int put_report(struct site *site, struct arena *arena, const char *id, struct buf *out,
                      struct err *err)
{
    struct run_record run;
    struct report report;
    if (!site->store)
        return err_set(err, ERR_NOT_FOUND, "no runs yet");
    if (history_run(site->store, arena, id, &run, err))
        return -1;
    report_fill(site->store, arena, &run, false, &report);
    report_json(&report, out);
    return 0;
}

/* What stands behind "/v1/evaluations"; NULL: it does not begin so. */
static const char *evaluations_of(const char *path)
{
    size_t length = strlen(EVALUATIONS_PATH);
    return strncmp(path, EVALUATIONS_PATH, length) == 0 ? path + length : NULL;
}

static bool feeds(const char *path)
{
    return evaluations_of(path) && evaluations_feeds(evaluations_of(path));
}

static int feed(void *context, const char *path, char note[SERVE_NOTE], struct buf *out,
                enum serve_feed *left, struct err *err)
{
    const struct site *site = context;
    return evaluations_feed(site->evaluations, evaluations_of(path), note, out, left, err);
}

static int find(struct site *site, struct arena *arena, const char *path, struct buf *out,
                const char **type, struct err *err)
{
    const char *id;
    *type = "application/json";
    if (strcmp(path, "/v1/runs") == 0)
        return put_runs(site, arena, out, err);
    const char *rest = evaluations_of(path);
    if (rest)
        return evaluations_put(site->evaluations, rest, out, err);
    if ((id = run_of(arena, path, "/v1/runs/", "/status")))
        return put_status(site, arena, id, run_status_json, out, err);
    if ((id = run_of(arena, path, "/v1/runs/", "/report")))
        return put_report(site, arena, id, out, err);
    if (strcmp(path, "/metrics") == 0) {
        *type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        int failed = put_status(site, arena, NULL, run_status_metrics, out, err);
        if (!failed || err->code != ERR_NOT_FOUND)
            return failed;
        buf_add_text(out, "# EOF\n"); /* no runs yet: that is no fault of the server */
        return 0;
    }
    return put_file(run_of(arena, path, "/runs/", "") ? "/runs/" : path, out, type, err);
}

static int document(void *context, const char *path, struct buf *out, const char **type,
                    struct err *err)
{
    ARENA_LOCAL(arena);
    return find(context, arena, path, out, type, err);
}

/* ---- loop thread ---- */

static int act(void *context, const char *path, const char *confirmed, struct buf *out,
               struct err *err)
{
    static const struct {
        const char *rest;
        int signal_number;
    } acts[] = {{"/pause", SIGUSR1}, {"/resume", SIGUSR2}, {"/stop", SIGTERM}};
    struct site *site = context;
    ARENA_LOCAL(arena);
    struct run_record run;
    struct json json;
    const char *id = NULL;
    size_t i = 0;
    while (i < sizeof acts / sizeof acts[0] &&
           !(id = run_of(arena, path, "/v1/runs/", acts[i].rest)))
        i++;
    int failed = -1;
    if (!id)
        (void)err_set(err, ERR_NOT_FOUND, "there is no such act");
    else if (strcmp(id, confirmed) != 0)
        (void)err_set(err, ERR_USAGE, "X-Twagent-Confirm has to name the run %s", id);
    else if (control_find(site->settings, arena, site->folder, id, true, &run, err) == 0)
        failed = control_signal(site->folder, &run, acts[i].signal_number, err);
    if (failed && id && err->code == ERR_NOT_FOUND)
        err->code = ERR_BUSY; /* the run is there, but nothing to act on */
    if (!failed) {
        json_init(&json, out);
        json_object(&json);
        json_put_text(&json, "run", id);
        json_put_text(&json, "told", acts[i].rest + 1);
        json_object_end(&json);
    }
    return failed;
}

static void post(void *context, struct serve_post *asked)
{
    const struct site *site = context;
    evaluations_post(site->evaluations, asked);
}

static void end(void *context)
{
    const struct site *site = context;
    evaluations_stop(site->evaluations);
}

/* What stands at each address (docs/serve.md has the list). All are borrowed until
 * serve_site_close(). */
static void serve_site_open(const struct settings *settings, const char *folder,
                            struct evaluations *evaluations, struct serve_site *site)
{
    struct site *own = MEM_NEW(struct site);
    own->settings = settings;
    own->folder = folder;
    own->evaluations = evaluations;
    status_seen_init(&own->seen);
    *site =
        (struct serve_site){own, version, document, feeds, feed, act, "/v1/evaluate", post, end};
}

static void serve_site_close(struct serve_site *site)
{
    struct site *own = site->context;
    store_close(own->store);
    status_seen_free(&own->seen);
    mem_free(own);
}

/* Kept in the store's folder, so that a bookmark and a scraper outlast a restart; whoever may read
 * it may read the store. */
static int read_token(const char *folder, char token[SERVE_TOKEN + 1], struct err *err)
{
    BUF_LOCAL(text, 1024);
    MEM_LOCAL char *path = file_join(folder, "serve.token");
    int failed = file_read(path, &text, err);
    bool is = !failed && text.length >= SERVE_TOKEN &&
              strspn(buf_text(&text), "0123456789abcdef") == SERVE_TOKEN;
    if (is) {
        snprintf(token, SERVE_TOKEN + 1, "%.*s", SERVE_TOKEN, buf_text(&text));
    } else if (!failed || err->code == ERR_NOT_FOUND) {
        serve_make_token(token);
        failed = file_make_dirs(folder, err) || file_write(path, token, SERVE_TOKEN, err);
    }
    return failed ? -1 : 0;
}

static int serve(const struct settings *settings, const char *folder, struct err *err)
{
    char token[SERVE_TOKEN + 1];
    struct serve_options options = {.listen = settings->listen, .token = token};
    struct serve *server = NULL;
    struct serve_site site;
    if (read_token(folder, token, err))
        return -1;
    struct loop *loop = loop_new();
    struct evaluations *evaluations = evaluations_open(loop, settings, folder);
    serve_site_open(settings, folder, evaluations, &site);
    int failed = serve_new(loop, &options, &site, &server, err);
    if (failed)
        evaluations_stop(evaluations);
    evaluations_tell(evaluations, server);
    if (!failed) {
        printf("%s  (%s; Ctrl-C ends it, runs go on)\n", serve_url(server), folder);
        fflush(stdout);
    }
    loop_run(loop);
    serve_free(server);
    serve_site_close(&site);
    evaluations_free(evaluations);
    loop_free(loop);
    return failed;
}

int command_serve(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct err err = {0};
    MEM_LOCAL char *folder = control_folder(settings);
    (void)arguments, (void)count;
    log_add_sink(log_sink_lines, stderr, LOG_WARN);
    umask(077); /* the token's file is nobody else's */
    int failed = evaluations_check(settings, &err) || serve(settings, folder, &err);
    return failed ? command_fail(&err) : 0;
}
