/* bench_streams PROVIDER [STREAMS [SECONDS [BYTES_A_SECOND]]]: that many streaming completions at
 * once from fake_provider; prints what the client needed for them. Plain HTTP/1.1, a connection a
 * stream, which is the dearest in memory short of TLS. */
#include "base/clock.h"
#include "base/mem.h"
#include "loop/http.h"
#include "loop/loop.h"
#include "loop/process.h"
#include "loop/task.h"

#include "measure.h"

enum { PIECE = 16, EVENT_BYTES = 196 }; /* content in an event, and what it is on the wire */

struct stream {
    struct task task;
    struct bench *bench;
    struct http_request *request;
    size_t bytes, events;
    char last; /* byte of what was consumed */
};

struct bench { /* the root: starts the provider, then the streams, then stops the provider */
    struct task task;
    const char *provider;
    long count, seconds, rate;
    struct process *server;
    struct http *http;
    struct stream *streams;
    char url[128];
    long running, most_running, failed;
    size_t bytes, events;
    uint64_t started_ns, ended_ns;
    double started_cpu, ended_cpu;
    long rss_kb; /* when the first stream ended */
};

static const char *const states[] = {"running"};
static const uint32_t moves[] = {0};

static void take(struct stream *stream)
{
    size_t length;
    const char *body = http_body(stream->request, &length);
    for (size_t i = 0; i < length; i++) {
        stream->events += body[i] == '\n' && stream->last == '\n';
        stream->last = body[i];
    }
    stream->bytes += length;
    http_consume(stream->request, length);
}

static enum task_result stream_step(struct task *task)
{
    static const char body[] =
        "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}";
    static const char *const headers[] = {"Content-Type: application/json", NULL};
    struct stream *stream = (struct stream *)task;
    struct bench *bench = stream->bench;
    if (stream->request == NULL) {
        struct http_spec spec = {.method = "POST",
                                 .url = bench->url,
                                 .headers = headers,
                                 .body = body,
                                 .body_length = sizeof body - 1};
        struct err err = {0};
        stream->request = http_start(bench->http, task, &spec, &err);
        if (stream->request == NULL) {
            fprintf(stderr, "%s\n", err.message);
            bench->failed++;
            return TASK_DONE;
        }
        if (++bench->running > bench->most_running)
            bench->most_running = bench->running;
        return TASK_WAIT;
    }
    take(stream);
    if (!http_done(stream->request))
        return TASK_WAIT;
    if (bench->rss_kb == 0)
        bench->rss_kb = status_kb("VmRSS:");
    const struct err *err = http_error(stream->request);
    if (err->code != ERR_NONE && bench->failed++ == 0)
        fprintf(stderr, "%s\n", err->message);
    bench->bytes += stream->bytes;
    bench->events += stream->events;
    http_free_request(stream->request);
    bench->running--;
    return TASK_DONE;
}

static const struct task_type stream_type = {
    .name = "stream", .states = states, .moves = moves, .state_count = 1, .step = stream_step};

static bool start_server(struct bench *bench)
{
    char size[32], rate[32];
    long events = bench->rate * bench->seconds / EVENT_BYTES;
    snprintf(size, sizeof size, "%ld", events * PIECE);
    snprintf(rate, sizeof rate, "%ld", bench->rate);
    const char *const argv[] = {bench->provider, "--size", size, "--rate", rate, NULL};
    struct process_spec spec = {.argv = argv, .lines = true};
    struct err err = {0};
    bench->server = process_start(bench->task.loop, &bench->task, &spec, &err);
    if (bench->server == NULL)
        fprintf(stderr, "%s\n", err.message);
    return bench->server != NULL;
}

static enum task_result start_streams(struct bench *bench, const char *line)
{
    int port;
    struct err err = {0};
    if (sscanf(line, "port %d", &port) != 1 ||
        (bench->http = http_new(bench->task.loop, &err)) == NULL) {
        fprintf(stderr, "no port, or %s\n", err.message);
        process_stop(bench->server);
        return TASK_WAIT;
    }
    snprintf(bench->url, sizeof bench->url, "http://127.0.0.1:%d/v1/chat/completions", port);
    bench->started_ns = clock_now_ns();
    bench->started_cpu = cpu_seconds();
    bench->streams = mem_array((size_t)bench->count, sizeof *bench->streams);
    for (long i = 0; i < bench->count; i++) {
        char id[40];
        snprintf(id, sizeof id, "s%ld", i);
        task_start(bench->task.loop, &bench->streams[i].task, &stream_type, &bench->task, id);
        bench->streams[i].bench = bench;
    }
    return TASK_WAIT;
}

static enum task_result bench_step(struct task *task)
{
    struct bench *bench = (struct bench *)task;
    if (bench->server == NULL)
        return start_server(bench) ? TASK_WAIT : TASK_DONE;
    if (process_outcome(bench->server) != PROCESS_RUNNING)
        return task->pending == 0 ? TASK_DONE : TASK_WAIT;
    const char *line = process_line(bench->server);
    if (line != NULL)
        return start_streams(bench, line);
    if (bench->ended_ns == 0 && bench->streams != NULL && task->pending == 1) {
        bench->ended_ns = clock_now_ns(); /* the server alone is left */
        bench->ended_cpu = cpu_seconds();
        process_stop(bench->server);
    }
    return TASK_WAIT;
}

static const struct task_type bench_type = {
    .name = "bench", .states = states, .moves = moves, .state_count = 1, .step = bench_step};

static long argument(int argc, char **argv, int index, long fallback)
{
    return index < argc ? strtol(argv[index], NULL, 10) : fallback;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench_streams PROVIDER [STREAMS [SECONDS [BYTES_A_SECOND]]]\n");
        return 2;
    }
    raise_descriptor_limit();
    struct loop *loop = loop_new();
    static struct bench bench;
    task_start(loop, &bench.task, &bench_type, NULL, "streams");
    bench.provider = argv[1];
    bench.count = argument(argc, argv, 2, 1000);
    bench.seconds = argument(argc, argv, 3, 20);
    bench.rate = argument(argc, argv, 4, 4096);
    loop_run(loop);
    if (bench.ended_ns == 0)
        return 1;
    process_free(bench.server);
    http_free(bench.http);
    loop_free(loop);
    mem_free(bench.streams);

    double wall = (double)(bench.ended_ns - bench.started_ns) / 1e9;
    double cpu = bench.ended_cpu - bench.started_cpu;
    printf("streams_at_once %ld\n", bench.most_running);
    printf("failed %ld\n", bench.failed);
    printf("seconds %.2f\n", wall);
    printf("body_bytes %zu\n", bench.bytes);
    printf("body_bytes_per_stream_second %.0f\n", (double)bench.bytes / (double)bench.count / wall);
    printf("events %zu\n", bench.events);
    printf("cpu_seconds %.2f\n", cpu);
    printf("cpu_share_of_one_core %.3f\n", cpu / wall);
    long most_kb = status_kb("VmHWM:"); /* which the kernel brings up to date now and then */
    printf("resident_mb_most %.1f\n",
           (double)(most_kb > bench.rss_kb ? most_kb : bench.rss_kb) / 1024);
    return bench.failed == 0 ? 0 : 1;
}
