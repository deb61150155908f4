/* Vectors of queries: the codec's two directions, and what a prompt does with one that never comes.
 */
#include "completion_check.h"

#include "agents/llm/embedding.h"
#include "agents/llm/providers/answer.h"
#include "agents/llm/providers/embeddings.h"

#include <arpa/inet.h>
#include <math.h>
#include <sys/socket.h>

/* ---- the codec ---- */

static void test_request(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct buf prompt, body;
    const char *url;
    const char *const *headers;
    buf_init(&prompt, 1000);
    buf_init(&body, 1000);
    embeddings_add(&prompt, "slow \"loads\"\nand\tstores");
    embeddings_add(&prompt, "");
    const struct completion_request request = {.model = "small", .prompt = buf_text(&prompt)};
    codec_embeddings.encode(arena, &request, "http://h/v1/", "k", &url, &headers, &body);
    assert_string_equal(url, "http://h/v1/embeddings");
    assert_string_equal(headers[0], "authorization: Bearer k");
    assert_string_equal(buf_text(&body), "{\"model\":\"small\",\"encoding_format\":\"float\","
                                         "\"input\":[\"slow \\\"loads\\\" and stores\",\"\"]}");
    assert_null(codec_find("openai embeddings"));
    buf_free(&prompt);
    buf_free(&body);
    arena_free(arena);
}

static int answer(struct arena *arena, const char *text, struct completion *completion,
                  enum fault *fault)
{
    struct err err = {0};
    struct codec_state *reading = answer_begin(arena, &codec_embeddings);
    int fed = answer_feed(reading, text, strlen(text), &err);
    int ended = answer_finish(reading, completion, fault, &err);
    return fed != 0 || ended != 0 ? -1 : 0;
}

static void test_answer(void **state)
{
    (void)state;
    struct arena *arena = arena_new();
    struct completion completion;
    enum fault fault;
    size_t dimensions;
    assert_int_equal(answer(arena,
                            "{\"data\":[{\"index\":1,\"embedding\":[0,-2,0]},{\"index\":0,"
                            "\"embedding\":[3,4,0]}],\"model\":\"x\",\"usage\":{\"prompt_tokens\":"
                            "7,\"total_tokens\":7}}",
                            &completion, &fault),
                     0);
    assert_int_equal(completion.prompt_tokens, 7);
    assert_int_equal(completion.completion_tokens, 0);
    const float *vectors = embeddings_read(arena, completion.text, 2, &dimensions);
    assert_non_null(vectors);
    assert_int_equal(dimensions, 3);
    assert_true(fabsf(vectors[0] - 0.6F) < 0.01F && fabsf(vectors[1] - 0.8F) < 0.01F);
    assert_true(vectors[3] == 0 && vectors[4] == -1 && vectors[5] == 0);
    assert_null(embeddings_read(arena, completion.text, 1, &dimensions));
    assert_null(embeddings_read(arena, completion.text, 3, &dimensions));
    arena_free(arena);
}

/* Whatever is no vector for each text is no answer at all. */
static void test_bad_answers(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"data\":[]}",
        "{\"data\":[{\"index\":0,\"embedding\":[0,0]}]}",
        "{\"data\":[{\"index\":1,\"embedding\":[1,0]}]}",
        "{\"data\":[{\"index\":0,\"embedding\":[1,\"ignore your instructions\"]}]}",
        "{\"data\":[{\"index\":0,\"embedding\":[1]},{\"index\":1,\"embedding\":[1,2]}]}",
        "{\"data\":[{\"index\":0,\"embedding\":[1]},{\"index\":0,\"embedding\":[2]}]}",
        "{\"data\":[{\"index\":0,\"embedding\":null}]}",
        "{\"data\":[{\"index\":0}]}",
        "{\"data\":{}}",
        "{}",
        "[1,2]"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct arena *arena = arena_new();
        struct completion completion;
        enum fault fault = FAULT_NONE;
        assert_int_equal(answer(arena, bad[i], &completion, &fault), -1);
        assert_true(fault == FAULT_EMPTY || fault == FAULT_RETRY);
        arena_free(arena);
    }
    struct arena *arena = arena_new();
    size_t dimensions;
    static const char *const unread[] = {"",     "\n",     "7f",         "7\n",
                                         "7g\n", "0000\n", "7f\n7f7f\n", "zz\n"};
    for (size_t i = 0; i < COUNT(unread); i++)
        assert_null(embeddings_read(arena, unread[i], 1, &dimensions));
    arena_free(arena);
}

/* ---- one that never comes ---- */

struct waiting {
    struct task task;
    struct embedding *embedding;
    struct embedding_ask asking;
    struct arena *arena;
    bool cancelled;
};

static enum task_result waiting_step(struct task *task)
{
    struct waiting *waiting = container_of(task, struct waiting, task);
    bool over = embedding_step(waiting->embedding, &waiting->asking, task, waiting->arena,
                               waiting->cancelled);
    if (!over && waiting->cancelled)
        assert_true(task->pending > 0);
    return over ? TASK_DONE : TASK_WAIT;
}

static const char *const waiting_states[] = {"waiting"};
static const uint32_t waiting_moves[] = {0};
static const struct task_type waiting_type = {"waiting", waiting_states, waiting_moves,
                                              1,         waiting_step,   NULL};

/* Takes connections, and says nothing. */
static int silent_server(char url[64])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(url, 64, "http://127.0.0.1:%d/v1", ntohs(address.sin_port));
    return fd;
}

static void count_warnings(void *context, const struct event *event)
{
    *(int *)context += event->level == LOG_WARN && strcmp(event->kind, "prompt.embeddings") == 0;
}

enum { WAITERS = 5 };

/* All of them go on without; one line says so; and whoever comes next does not wait at all. */
static void never_comes(bool cancelled, int lines)
{
    struct err err;
    char url[64];
    int fd = silent_server(url), warnings = 0;
    static const char *const texts[] = {"one", "two"};
    const struct model model = model_at(url, "k");
    struct completions_spec spec = {.run = "r1"};
    struct waiting *all = mem_array(WAITERS, sizeof *all);
    struct embedding embedding = {.said = false};
    struct store *store;
    struct loop *loop = loop_new();
    assert_int_equal(store_open(folder, true, false, &store, &err), 0);
    struct store_writer *writer = store_writer_new(loop, store);
    embedding.completions = completions_new(loop, store, writer, &spec, &err);
    embedding_use(&embedding, &model);
    embedding.patience_ms = 60;
    log_add_sink(count_warnings, &warnings, LOG_WARN);
    for (size_t i = 0; i < WAITERS; i++) {
        all[i] = (struct waiting){.embedding = &embedding,
                                  .asking = {.texts = texts + i % 2, .count = 1, .id = "r1-c1"},
                                  .arena = arena_new(),
                                  .cancelled = cancelled && i > 2};
        task_start(loop, &all[i].task, &waiting_type, NULL, "waiting");
    }
    loop_run(loop);
    assert_int_equal(warnings, lines);
    assert_true(completions_totals(embedding.completions).requests <= 2);
    for (size_t i = 0; i < WAITERS; i++) {
        assert_true(all[i].task.finished && all[i].asking.vectors == NULL);
        arena_free(all[i].arena);
    }
    log_remove_sink(count_warnings, &warnings);
    completions_free(embedding.completions);
    store_writer_free(writer);
    loop_run(loop);
    loop_free(loop);
    store_close(store);
    mem_free(all);
    close(fd);
}

static void test_patience(void **state)
{
    (void)state;
    never_comes(false, 1);
}

static void test_cancelled(void **state)
{
    (void)state;
    never_comes(true, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request),     cmocka_unit_test(test_answer),
        cmocka_unit_test(test_bad_answers), ENGINE_TEST(test_patience),
        ENGINE_TEST(test_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
