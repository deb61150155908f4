/* Whose turn it is. */
#include "queue/private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static size_t one_place(void *context, const char *backend, struct lane_share shares[LANES_MAX])
{
    (void)context, (void)backend;
    shares[0] = (struct lane_share){.cores = NULL};
    return 1;
}

static const struct queue_options options = {.shares = one_place};

static void setup(struct queue *queue)
{
    memset(queue, 0, sizeof *queue);
    queue->options = &options;
    queue->mean_ms = 100;
    list_init(&queue->clients);
    list_init(&queue->measured);
}

static void post(struct queue *queue, const char *client, uint64_t first, size_t count,
                 const char *problem)
{
    for (size_t i = 0; i < count; i++)
        job_wait(queue, client, first + i, problem, "cpu", 1);
}

/* Measures the next one, which takes `ms`; its id. */
static uint64_t measure(struct queue *queue, double ms)
{
    struct job *job = job_next(queue, "cpu", NULL);
    assert_non_null(job);
    uint64_t id = job->id;
    job_begin(queue, job);
    job_end(queue, job, ms);
    job_free(job);
    return id;
}

static void test_few_do_not_wait_for_many(void **state)
{
    struct queue queue;
    (void)state;
    setup(&queue);
    post(&queue, "many", 1, 200, "p");
    for (int i = 0; i < 50; i++)
        (void)measure(&queue, 100);
    post(&queue, "few", 1000, 3, "p");
    unsigned few = 0;
    for (int i = 1; i <= 6; i++) {
        few += measure(&queue, 100) >= 1000;
        assert_in_range(few, i / 2, (i + 1) / 2); /* in turns: nothing is owed for earlier */
    }
    assert_int_equal(queue.now.clients, 1);
    clients_free(&queue);
}

/* Shares are of time: who asks for what takes ten times as long is asked a tenth as often. */
static void test_time_counts(void **state)
{
    struct queue queue;
    unsigned slow = 0;
    (void)state;
    setup(&queue);
    post(&queue, "slow", 1, 100, "p");
    post(&queue, "quick", 1000, 100, "p");
    for (int i = 0; i < 55; i++) {
        bool is = job_next(&queue, "cpu", NULL)->id < 1000;
        slow += is;
        (void)measure(&queue, is ? 1000 : 100);
    }
    assert_in_range(slow, 4, 6);
    clients_free(&queue);
}

/* One that is measured counts at once, or a client could fill all lanes before the first ends. */
static void test_what_is_measured_counts(void **state)
{
    struct queue queue;
    (void)state;
    setup(&queue);
    post(&queue, "a", 1, 10, "p");
    post(&queue, "b", 100, 10, "q");
    struct job *first = job_next(&queue, "cpu", NULL);
    job_begin(&queue, first);
    struct job *second = job_next(&queue, "cpu", NULL);
    assert_string_equal(second->client->name, "b");
    assert_int_equal(job_next(&queue, "cpu", "p")->id, 2); /* of one problem alone */
    assert_null(job_next(&queue, "cpu", "r"));
    assert_null(job_next(&queue, "cuda", NULL));
    job_end(&queue, first, 1);
    job_free(first);
    clients_free(&queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_do_not_wait_for_many),
        cmocka_unit_test(test_time_counts),
        cmocka_unit_test(test_what_is_measured_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
