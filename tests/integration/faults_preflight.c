/* Rows of the fault table that must be found before a run starts work: nothing that costs is sent.
 */
#include "faults.h"

#include "agents/llm/preflight.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct check {
    struct task task;
    struct preflight *preflight;
    const struct models *models;
    const char *ca_file;
    struct err err;
};

static enum task_result check_step(struct task *task)
{
    struct check *check = container_of(task, struct check, task);
    if (check->preflight == NULL)
        check->preflight =
            preflight_start(task->loop, task, &check->models, 1, check->ca_file, &check->err);
    if (check->preflight == NULL)
        return TASK_DONE;
    if (!preflight_done(check->preflight))
        return TASK_WAIT;
    check->err = *preflight_error(check->preflight);
    preflight_free(check->preflight);
    return TASK_DONE;
}

static const char *const states[] = {"checking"};
static const uint32_t moves[] = {1};
static const struct task_type check_type = {"check", states, moves, 1, check_step, NULL};

static void keep_event(void *context, const struct event *event)
{
    buf_addf(context, "%s: %s\n", event->kind, event->message);
}

/* What preflight says about `names` at `url`, as one line. */
static struct err preflight(unsigned format, const char *url, const char *key, const char *name,
                            const char *ca_file)
{
    const struct codec *codec = codec_of(format);
    const struct model model = {.name = name,
                                .provider = codec->name,
                                .wire_name = name,
                                .codec = codec,
                                .base_url = url,
                                .key_variable = codec->key_variable,
                                .key = key,
                                .temperature = -1,
                                .weight = 1,
                                .where = "here"};
    const struct models models = {.items = &model, .count = 1};
    struct check check = {.models = &models, .ca_file = ca_file};
    struct loop *loop = loop_new();
    struct buf log;
    buf_init(&log, 1 << 20);
    log_add_sink(keep_event, &log, LOG_DEBUG);
    task_start(loop, &check.task, &check_type, NULL, "check");
    loop_run(loop);
    loop_free(loop);
    log_remove_sink(keep_event, &log);
    EXPECT(strstr(check.err.message, key) == NULL, "the key is in the message");
    EXPECT(strstr(buf_text(&log), key) == NULL, "the key is in the log");
    buf_free(&log);
    return check.err;
}

static const struct {
    const char *name, *key, *model;
    const char *words; /* in the message; NULL: all is well */
    int requests;      /* a list helps to name the nearest */
} rows[] = {
    {"preflight: all is well", KEY, "fake-model", NULL, 1},
    {"preflight: 404 model", KEY, "no-such-model", "no-such-model", 2},
    {"preflight: a wrong key", "sk-wrong-9876543210", "fake-model", "", 1},
};

static void run_row(size_t i, unsigned format)
{
    struct server provider =
        server_start((const char *const[]){TEST_BINARY_DIR "/tests/fakes/fake_provider", "--key",
                                           KEY, "--model", "fake-model,another-model", NULL});
    struct err err =
        preflight(format, base_url(format, provider.port), rows[i].key, rows[i].model, NULL);
    struct counts counts = counts_get(provider.port);
    server_stop(&provider, SIGKILL);
    EXPECT((err.code == ERR_NONE) == (rows[i].words == NULL), "%s: \"%s\"", err_code_name(err.code),
           err.message);
    EXPECT(rows[i].words == NULL || strstr(err.message, rows[i].words) != NULL,
           "no \"%s\" in \"%s\"", rows[i].words, err.message);
    EXPECT(counts.chats == 0, "%" PRId64 " requests that cost", counts.chats);
    EXPECT(counts.requests == rows[i].requests, "%" PRId64 " requests, not %d", counts.requests,
           rows[i].requests);
    row_end(rows[i].name, format, counts.requests);
}

/* Nobody there may pass; a server that cannot be trusted does not. */
static void without_provider(unsigned format)
{
    struct server gone = provider_start(NULL, 10);
    server_stop(&gone, SIGKILL);
    struct err err = preflight(format, base_url(format, gone.port), KEY, "fake-model", NULL);
    EXPECT(err.code == ERR_NONE, "%s", err.message);
    row_end("preflight: a provider that is down for now", format, 0);

    char url[64];
    struct server server = server_start(
        (const char *const[]){TEST_SOURCE_DIR "/tests/fakes/fake_tls.py", "http/1.1", NULL});
    snprintf(url, sizeof url, "https://localhost:%d/v1", server.port);
    err = preflight(format, url, KEY, "fake-model", NULL);
    EXPECT(err.code != ERR_NONE, "a stranger is trusted");
    server_stop(&server, SIGKILL);
    row_end("preflight: TLS failure", format, 0);
}

void run_preflight(void)
{
    for (unsigned format = OPENAI; format <= GEMINI; format *= 2) {
        for (size_t i = 0; i < COUNT(rows); i++)
            if (row_wanted(rows[i].name))
                run_row(i, format);
        if (row_wanted("preflight: "))
            without_provider(format);
    }
}
