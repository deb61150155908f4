/* A task that makes one request and keeps what came, for the tests of loop/http. */
#pragma once

#include "loop/http.h"
#include "probe.h"

#define CHAT        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
#define CHAT_STREAM "{\"stream\":true,\"model\":\"m\",\"messages\":[{\"role\":\"user\"}]}"

struct fetch {
    struct probe probe;
    struct http *http;
    struct http_spec spec;
    struct http_request *request;
    struct err start_err;
    char *text; /* consumed so far */
    size_t length;
    int wakes;        /* with new bytes */
    size_t free_from; /* bytes from which it is freed, and the task done */
    bool keep;        /* consume nothing */
};

static inline void fetch_take(struct fetch *fetch)
{
    size_t length;
    const char *body = http_body(fetch->request, &length);
    if (length == 0 || fetch->keep)
        return;
    fetch->text = realloc(fetch->text, fetch->length + length + 1);
    memcpy(fetch->text + fetch->length, body, length);
    fetch->length += length;
    fetch->text[fetch->length] = '\0';
    fetch->wakes++;
    http_consume(fetch->request, length);
}

static inline enum task_result fetch_step(struct probe *probe)
{
    struct fetch *fetch = (struct fetch *)probe;
    if (probe->steps == 1) {
        fetch->request = http_start(fetch->http, &probe->task, &fetch->spec, &fetch->start_err);
        if (fetch->request == NULL)
            return TASK_DONE;
        assert_false(http_done(fetch->request));
        assert_int_equal(http_status(fetch->request), 0);
        return TASK_WAIT;
    }
    fetch_take(fetch);
    if (fetch->free_from > 0 && fetch->length >= fetch->free_from) {
        http_free_request(fetch->request);
        fetch->request = NULL;
        assert_int_equal(probe->task.pending, 0);
        return TASK_DONE;
    }
    return http_done(fetch->request) ? TASK_DONE : TASK_WAIT;
}

static inline void fetch_free(struct fetch *fetch)
{
    http_free_request(fetch->request);
    free(fetch->text);
    fetch->request = NULL;
    fetch->text = NULL;
}

/* Runs `count` fetches at once on a loop of their own. */
static inline void fetch_all(struct fetch *fetches, size_t count)
{
    struct loop *loop = loop_new();
    struct err err = {0};
    struct http *http = http_new(loop, &err);
    assert_non_null(http);
    for (size_t i = 0; i < count; i++) {
        struct fetch *fetch = &fetches[i];
        fetch->http = http;
        probe_start(loop, &fetch->probe, NULL, "fetch", fetch_step, NULL);
    }
    loop_run(loop);
    http_free(http);
    loop_free(loop);
}
