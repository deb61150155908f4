/* bench_completions URL STORE [COUNT [CA_FILE]]: that many streamed completions at once through the
 * engine that a run uses: encoded, read event by event, and each on disk in STORE before its asker
 * is woken. Prints what this process needed for them. bench/providers/completions.py asks the same.
 */
#include "agents/llm/ask.h"
#include "base/clock.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "loop/task.h"
#include "store/store.h"
#include "store/writer.h"

#include "../loop/measure.h"

enum { PROMPT_BYTES = 4096 };

struct bench { /* the root: starts every ask, then waits for them */
    struct task task;
    struct completions *completions;
    struct model model;
    struct ask *asks;
    long count;
    char prompt[PROMPT_BYTES + 1];
    uint64_t started_ns, ended_ns;
    double started_cpu, ended_cpu;
};

static const char *const states[] = {"running"};
static const uint32_t moves[] = {0};

static void start_asks(struct bench *bench)
{
    bench->started_ns = clock_now_ns();
    bench->started_cpu = cpu_seconds();
    bench->asks = mem_array((size_t)bench->count, sizeof *bench->asks);
    for (long i = 0; i < bench->count; i++) {
        char id[40];
        struct ask *ask = &bench->asks[i];
        snprintf(id, sizeof id, "r1-c%ld", i);
        ask->model = &bench->model;
        ask->request = (struct completion_request){.system = "You make kernels fast.",
                                                   .prompt = bench->prompt,
                                                   .temperature = -1.0,
                                                   .max_tokens = 0};
        ask->purpose = "implement";
        ask->sample = i; /* else all would be one request, asked once */
        ask_start(bench->completions, ask, &bench->task, id);
    }
}

static enum task_result bench_step(struct task *task)
{
    struct bench *bench = (struct bench *)task;
    if (bench->asks == NULL)
        start_asks(bench);
    if (task->pending > 0)
        return TASK_WAIT;
    bench->ended_ns = clock_now_ns();
    bench->ended_cpu = cpu_seconds();
    return TASK_DONE;
}

static const struct task_type bench_type = {
    .name = "bench", .states = states, .moves = moves, .state_count = 1, .step = bench_step};

static int fail(const struct err *err)
{
    fprintf(stderr, "bench_completions: %s\n", err->message);
    return 1;
}

static int report(struct bench *bench)
{
    long failed = 0;
    size_t bytes = 0;
    for (long i = 0; i < bench->count; i++) {
        struct ask *ask = &bench->asks[i];
        if (ask->err.code == ERR_NONE && !ask->from_store)
            bytes += strlen(ask->completion.text);
        else if (failed++ == 0)
            fprintf(stderr, "bench_completions: %s\n", ask->err.message);
        ask_free(ask);
    }
    double cpu = bench->ended_cpu - bench->started_cpu;
    printf("completions %ld\n", bench->count - failed);
    printf("failed %ld\n", failed);
    printf("content_bytes %zu\n", bytes);
    printf("seconds %.2f\n", (double)(bench->ended_ns - bench->started_ns) / 1e9);
    printf("cpu_seconds %.3f\n", cpu);
    printf("cpu_ms_per_completion %.3f\n", cpu * 1e3 / (double)bench->count);
    printf("resident_mb_most %.1f\n", (double)status_kb("VmHWM:") / 1024);
    return failed > 0;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    struct store *store;
    struct err err = {0};
    if (argc < 3) {
        fprintf(stderr, "usage: bench_completions URL STORE [COUNT [CA_FILE]]\n");
        return 2;
    }
    raise_descriptor_limit();
    bench.count = argc > 3 ? strtol(argv[3], NULL, 10) : 1000;
    for (size_t i = 0; i < PROMPT_BYTES; i++)
        bench.prompt[i] = (char)(i % 64 == 63 ? '\n' : 'a' + i % 26);
    bench.model = (struct model){.name = "fake-model",
                                 .provider = "openai",
                                 .wire_name = "fake-model",
                                 .codec = codec_find("openai"),
                                 .base_url = argv[1],
                                 .key_variable = "OPENAI_API_KEY",
                                 .key = "sk-bench",
                                 .temperature = -1.0,
                                 .prompt_price = -1.0,
                                 .completion_price = -1.0,
                                 .weight = 1.0,
                                 .where = "bench"};
    const struct completions_spec spec = {.run = "r1",
                                          .in_flight = (unsigned)bench.count,
                                          .seed = 1,
                                          .ca_file = argc > 4 ? argv[4] : NULL};
    if (store_open(argv[2], true, false, &store, &err) != 0)
        return fail(&err);
    struct loop *loop = loop_new();
    struct store_writer *writer = store_writer_new(loop, store);
    bench.completions = completions_new(loop, store, writer, &spec, &err);
    if (bench.completions == NULL)
        return fail(&err);
    task_start(loop, &bench.task, &bench_type, NULL, "bench");
    loop_run(loop);
    int code = report(&bench);
    mem_free(bench.asks);
    completions_free(bench.completions);
    store_writer_free(writer);
    loop_free(loop);
    store_close(store);
    return code;
}
