/*   ASK -----> ANSWER -----> OVER
 *    ^           | busy, or out of reach
 *    +-- WAIT <--+                       */
#include "agents/retrieve/rag/embed.h"

#include "base/json.h"
#include "base/value.h"
#include "loop/http.h"
#include "loop/loop.h"
#include "loop/task.h"

#include <math.h>
#include <string.h>

enum { TRIES = 5, FIRST_WAIT_MS = 1000, TOTAL_MS = 120000, ANSWER_MOST = 64 << 20 };
enum { ASK, ANSWER, WAIT, OVER };

static const char *const states[] = {"ask", "answer", "wait", "over"};
static const uint32_t moves[] = {1u << ANSWER | 1u << OVER, 1u << WAIT | 1u << OVER, 1u << ASK, 0};

struct asking {
    struct task task;
    struct http *http;
    const struct http_spec *spec;
    struct http_request *request;
    struct timer timer;
    unsigned tries;
    int status;
    struct buf body;
    struct err err;
};

static enum task_result ask(struct asking *asking)
{
    asking->tries++;
    asking->request = http_start(asking->http, &asking->task, asking->spec, &asking->err);
    task_move(&asking->task, asking->request ? ANSWER : OVER);
    return asking->request ? TASK_WAIT : TASK_DONE;
}

static enum task_result answer(struct asking *asking)
{
    size_t length;
    if (!http_done(asking->request))
        return TASK_WAIT;
    const char *body = http_body(asking->request, &length);
    asking->status = http_status(asking->request);
    asking->err = *http_error(asking->request);
    buf_reset(&asking->body);
    buf_add(&asking->body, body, length);
    http_free_request(asking->request);
    bool busy = asking->err.code == ERR_NETWORK || asking->err.code == ERR_TIMEOUT ||
                asking->status == 429 || asking->status >= 500;
    if (!busy || asking->tries == TRIES) {
        task_move(&asking->task, OVER);
        return TASK_DONE;
    }
    task_move(&asking->task, WAIT);
    timer_start(asking->task.loop, &asking->timer, &asking->task,
                (uint64_t)FIRST_WAIT_MS << (asking->tries - 1));
    return TASK_WAIT;
}

static enum task_result step(struct task *task)
{
    struct asking *asking = container_of(task, struct asking, task);
    switch (task->state) {
    case ASK:
        return ask(asking);
    case ANSWER:
        return answer(asking);
    default:
        if (!asking->timer.fired)
            return TASK_WAIT;
        task_move(task, ASK);
        return TASK_AGAIN;
    }
}

static const struct task_type asking_type = {"embeddings", states, moves, 4, step, NULL};

static void write_request(const struct embedder *embedder, const char *const *texts, size_t count,
                          struct buf *out)
{
    struct json json = {.out = out};
    json_object(&json);
    json_put_text(&json, "model", embedder->model);
    json_put_text(&json, "encoding_format", "float");
    json_put_array(&json, "input");
    for (size_t i = 0; i < count; i++) {
        size_t length = strnlen(texts[i], EMBED_TEXT_MOST);
        while (length > 0 && ((unsigned char)texts[i][length] & 0xc0) == 0x80)
            length--; /* not amid a letter */
        json_text_n(&json, texts[i], length);
    }
    json_array_end(&json);
    json_object_end(&json);
}

static bool take_vector(const struct value *list, float *vector, size_t dimensions)
{
    double square = 0;
    for (size_t i = 0; i < dimensions; i++) {
        const struct value *number = list->items[i];
        if (number->kind != VALUE_INT && number->kind != VALUE_REAL)
            return false;
        vector[i] = (float)number->real;
        square += number->real * number->real;
    }
    if (!(square > 0) || !isfinite(square))
        return false;
    for (size_t i = 0; i < dimensions; i++)
        vector[i] = (float)((double)vector[i] / sqrt(square));
    return true;
}

/* {"data": [{"index": 0, "embedding": [...]}, ...]}, in any order. */
static int read_answer(const struct buf *body, size_t count, struct arena *arena, float **vectors,
                       size_t *dimensions, struct err *err)
{
    struct value *root;
    if (value_parse_json(arena, "embeddings", body->data, body->length, &root, err) != 0)
        return err_set(err, ERR_NETWORK, "the embeddings' answer is no JSON");
    const struct value *data = value_get(root, "data");
    size_t taken = 0;
    bool *seen = arena_array(arena, count, sizeof *seen);
    *dimensions = 0;
    for (size_t i = 0; data && data->kind == VALUE_LIST && i < data->count; i++) {
        const struct value *list = value_get(data->items[i], "embedding");
        int64_t index = value_int(data->items[i], "index", (int64_t)i);
        if (list == NULL || list->kind != VALUE_LIST || list->count == 0 || index < 0 ||
            (size_t)index >= count || seen[index] || list->count > EMBED_DIMENSIONS_MOST)
            break;
        if (*dimensions == 0) {
            *dimensions = list->count;
            *vectors = arena_array(arena, count * list->count, sizeof **vectors);
        }
        if (list->count != *dimensions ||
            !take_vector(list, *vectors + (size_t)index * *dimensions, *dimensions))
            break;
        seen[index] = true;
        taken++;
    }
    if (taken != count)
        return err_set(err, ERR_NETWORK, "the embeddings' answer has %zu good vectors of %zu",
                       taken, count);
    return 0;
}

static int check_status(const struct asking *asking, const struct embedder *embedder,
                        struct err *err)
{
    if (asking->err.code != ERR_NONE) {
        *err = asking->err;
        return err_wrap(err, "cannot ask %s for embeddings", embedder->url);
    }
    if (asking->status == 200)
        return 0;
    return err_set(err, ERR_NETWORK, "%s/embeddings answers %d for the model %s%s", embedder->url,
                   asking->status, embedder->model,
                   asking->status == 401 || asking->status == 403 ? ": look at the key"
                   : asking->status == 404 ? ": it has no such model, or no embeddings"
                                           : "");
}

int embed_texts(const struct embedder *embedder, const char *const *texts, size_t count,
                struct arena *arena, float **vectors, size_t *dimensions, struct err *err)
{
    struct asking asking = {.tries = 0};
    BUF_LOCAL(body, 16 << 20);
    buf_init(&asking.body, ANSWER_MOST);
    write_request(embedder, texts, count, &body);
    const char *headers[] = {"content-type: application/json", NULL, NULL};
    if (embedder->key != NULL)
        headers[1] = arena_printf(arena, "authorization: Bearer %s", embedder->key);
    const struct http_spec spec = {.method = "POST",
                                   .url = arena_printf(arena, "%s/embeddings", embedder->url),
                                   .headers = headers,
                                   .body = buf_text(&body),
                                   .body_length = body.length,
                                   .total_ms = TOTAL_MS,
                                   .body_max = ANSWER_MOST,
                                   .ca_file = embedder->ca_file};
    struct loop *loop = loop_new();
    asking.spec = &spec;
    asking.http = http_new(loop, err);
    int result = asking.http ? 0 : -1;
    if (result == 0) {
        task_start(loop, &asking.task, &asking_type, NULL, "embeddings");
        loop_run(loop);
        result = check_status(&asking, embedder, err);
    }
    http_free(asking.http);
    loop_free(loop);
    if (result == 0)
        result = read_answer(&asking.body, count, arena, vectors, dimensions, err);
    buf_free(&asking.body);
    return result;
}
