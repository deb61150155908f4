/* fake_worker [--ms LOW-HIGH] [--final-ms N] [--dies N] [worker --backend cpu ...]: an evaluator
 * that evaluates nothing. It speaks docs/worker-protocol.md, one evaluation at a time in the order
 * of asking, and its verdicts and times are functions of the candidate's source and tune numbers
 * alone: the same search has the same tree, however often it is killed.
 *
 * --ms: how long an evaluation takes, by its hash. --final-ms: a champion's. --dies N: the process
 * dies in every Nth evaluation that it begins, which a lane must survive; --final-dies FILE: it
 * dies in a champion's where there is no FILE yet, which it makes. --waits N: from the Nth
 * evaluation on all wait for ever for another twagent's turn; -1: those do that are no search's.
 * --turn FILE: who times has the lock of that file, and says so while it waits for it.
 * --opens-never 1: what it was asked to open. --says-final MS: that a final measurement takes it.
 * --unsteady N: all kernels but one in N are slower than the baseline at other sizes than the main
 * one.
 * --late PERCENT: a point that takes more than that of the fastest kernel so far is dropped.
 * --noisy 1: whoever is timed with another kernel is 100 times as fast, and that says nothing.
 * --host NAME: the machine that it says it is on. --cpu NAME: what kind that is.
 * --notes FILE: a line for each evaluation that was begun, so that a test can count them. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { PENDING_MOST = 64, LINE_MOST = 16 << 20, TURN_MS = 5 };
enum { TIMES = 2, STAGES }; /* the last stage, whose turn it has to be */
#define FOR_EVER_NS UINT64_C(1000000000000000)

static const double baseline_ns = 1e7;

static struct {
    long low_ms, high_ms, final_ms, dies, waits, opens_never, says_final, unsteady, noisy, late;
    const char *notes, *final_dies, *host, *cpu, *turn;
} options = {.low_ms = 5, .high_ms = 25};

struct pending { /* evaluations that were asked for; [0] is the one under way */
    json_t *request;
    uint64_t hash, started_ns, ends_ns;
    unsigned stages_said;
    int turn; /* of its file's descriptor, 1 more; 0: not asked for yet */
    bool waits;
};

static struct pending pending[PENDING_MOST];
static size_t pending_count;
static unsigned long begun;
static char *problem_name;

/* --- numbers from texts --- */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t hash_of(uint64_t seed, const char *text) /* FNV-1a, then splitmix64's end */
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed * UINT64_C(0x9e3779b97f4a7c15);
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

static const char *cpu_name(void)
{
    return options.cpu != NULL ? options.cpu : "fake";
}

static double share(uint64_t hash) /* [0, 1) */
{
    return (double)(hash >> 11) * 0x1p-53;
}

static const char *text_of(const json_t *request, const char *key)
{
    const char *text = json_string_value(json_object_get(request, key));
    return text != NULL ? text : "";
}

static char *tune_of(const json_t *request)
{
    const json_t *tune = json_object_get(request, "tune");
    return json_is_object(tune) ? json_dumps(tune, JSON_COMPACT | JSON_SORT_KEYS) : strdup("{}");
}

/* Each source has a level, each number of a parameter a factor that all sources share, each point a
 * little of its own: something that a search can learn. */
static double time_of(const json_t *request, uint64_t hash)
{
    double time = baseline_ns * (0.25 + share(hash_of(1, text_of(request, "source"))));
    const char *name;
    json_t *number;
    json_object_foreach(json_object_get(request, "tune"), name, number)
    {
        char word[128];
        snprintf(word, sizeof word, "%s=%lld", name, (long long)json_integer_value(number));
        time *= 0.8 + 0.45 * share(hash_of(2, word));
    }
    return time * (0.98 + 0.04 * share(hash));
}

/* --- records --- */

static void say(json_t *record) /* takes it */
{
    char *line = json_dumps(record, JSON_COMPACT);
    size_t length = strlen(line);
    line[length++] = '\n';
    for (size_t at = 0; at < length;) {
        ssize_t written = write(STDOUT_FILENO, line + at, length - at);
        if (written < 0 && errno != EINTR)
            _exit(1); /* the agent is gone */
        at += written > 0 ? (size_t)written : 0;
    }
    free(line);
    json_decref(record);
}

static void say_error(const json_t *request, const char *code, const char *message)
{
    say(json_pack("{s:O?, s:s, s:s, s:s}", "id", json_object_get(request, "id"), "event", "error",
                  "code", code, "message", message));
}

static json_t *interval(double median, double half)
{
    return json_pack("{s:f, s:f, s:f, s:i}", "median", median, "low", median * (1 - half), "high",
                     median * (1 + half), "samples", 12);
}

static json_t *metrics(double time_ns)
{
    double memory = 0.02 * baseline_ns / time_ns, compute = 0.05 * baseline_ns / time_ns;
    return json_pack("{s:{s:f, s:f, s:f, s:s, s:f}, s:{s:s, s:i, s:i, s:i}}", "roofline",
                     "gflops_per_s", 2.0 * baseline_ns / time_ns, "share_of_memory_roof", memory,
                     "share_of_compute_roof", compute, "limit", "compute", "share_of_limit",
                     compute, "hot_loop", "function", "kernel", "instructions", 12, "vector_bytes",
                     32, "spills", 0);
}

static json_t *stage_times(long ms)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f}", "parse", 0.0, "compile", (double)ms * 0.3,
                     "check", (double)ms * 0.3, "time", (double)ms * 0.4, "sanitize", 0.0,
                     "profile", 0.0);
}

struct outcome {
    const char *verdict, *stage, *reason, *details;
};

static struct outcome outcome_of(const json_t *request, uint64_t hash)
{
    static const struct outcome refused[] = {
        {"failed", "compile", "does not compile",
         "candidate.c:7:5: error: expected ';' before '}' token\n    7 |     }\n"},
        {"rejected", "check", "a wrong result: C on shape {M: 33, N: 65, K: 17}",
         "C: 65 of 2145 elements are wrong, worst C[32,64]: 0 instead of 1.25; pattern: boundary "
         "only\n"},
        {"failed", "check", "crashed: SIGSEGV", "the runner was killed by SIGSEGV in call 3\n"},
        {"kernel", "profile", "", ""},
    };
    double source = share(hash_of(3, text_of(request, "source"))), point = share(hash_of(hash, ""));
    return refused[source < 0.12 ? 0 : point < 0.1 ? 1 : point < 0.13 ? 2 : 3];
}

/* What it is timed with: another kernel, or what every kernel is. */
static double baseline_of(const json_t *request)
{
    const json_t *rival = json_object_get(request, "rival");
    if (rival == NULL)
        return baseline_ns;
    char *tune = tune_of(rival);
    uint64_t hash = hash_of(hash_of(5, tune), text_of(rival, "source"));
    free(tune);
    return time_of(rival, hash);
}

/* Far behind, when looked at: no kernel, though it might have been one. */
static bool is_dropped(const json_t *request, double time)
{
    static double best;
    if (options.late == 0 || strcmp(text_of(request, "effort"), "search") != 0)
        return false;
    bool behind = best > 0 && time * 100 > (double)options.late * best;
    if (!behind && (best <= 0 || time < best))
        best = time;
    return behind && json_number_value(json_object_get(request, "late")) > 0;
}

static json_t *evaluation(const struct pending *item, long ms)
{
    const json_t *request = item->request;
    bool final = strcmp(text_of(request, "effort"), "final") == 0;
    struct outcome outcome = outcome_of(request, item->hash);
    /* One kernel in eight is found out by its last measurement. */
    if (final && item->hash % 8 == 0)
        outcome = (struct outcome){"rejected", "sanitize", "a read out of bounds",
                                   "heap-buffer-overflow in kernel, candidate.c:9\n"};
    bool kernel = strcmp(outcome.verdict, "kernel") == 0;
    double time = time_of(request, item->hash);
    bool dropped = kernel && is_dropped(request, time);
    if (dropped)
        outcome = (struct outcome){"dropped", "time", "far behind, and no more", ""};
    kernel = kernel && !dropped;
    if (options.unsteady > 0 && strcmp(text_of(request, "effort"), "full") == 0 &&
        json_object_get(request, "rival") == NULL && item->hash % (uint64_t)options.unsteady != 0)
        time = 2 * baseline_ns;
    bool noisy = options.noisy > 0 && json_object_get(request, "rival") != NULL;
    double ratio = noisy ? 100 : baseline_of(request) / time;
    char identity[33], *tune = tune_of(request);
    snprintf(identity, sizeof identity, "%016llx%016llx", (unsigned long long)item->hash,
             (unsigned long long)hash_of(4, text_of(request, "source")));
    json_t *record = json_pack(
        "{s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:o, s:o, s:o, s:o, s:s, s:f, s:i, s:i, s:s}",
        "verdict", outcome.verdict, "stage", outcome.stage, "reason", outcome.reason, "details",
        outcome.details, "ours", 0, "dropped", dropped, "quarantined", 0, "win",
        kernel && ratio > 1.02, "time_ns", kernel || dropped ? interval(time, 0.005) : json_null(),
        "hot_ns", kernel && final ? interval(time * 0.9, 0.005) : json_null(), "baseline_ns",
        kernel ? interval(baseline_ns, 0.005) : json_null(), "speedup",
        kernel ? interval(ratio, 0.007) : json_null(), "baseline", "reference", "spread", 0.002,
        "timed_samples", 12, "dropped_samples", 0, "identity", identity);
    json_object_set_new(record, "noise", json_string(""));
    if (kernel)
        json_object_set_new(record, "finding",
                            json_string(noisy          ? "too noisy to say"
                                        : ratio > 1.02 ? "faster"
                                        : ratio < 0.98 ? "slower"
                                                       : "no difference shown"));
    json_object_set_new(record, "tune", json_loads(tune, 0, NULL));
    json_object_set_new(record, "metrics", kernel ? metrics(time) : json_object());
    json_object_set_new(record, "device",
                        json_pack("{s:s, s:s}", "backend", "cpu", "cpu", cpu_name()));
    json_object_set_new(record, "versions", json_pack("{s:s}", "twagent", "fake"));
    json_object_set_new(record, "baselines",
                        kernel && final
                            ? json_pack("{s:{s:o, s:o, s:b}}", "reference", "ns",
                                        interval(baseline_ns, 0.005), "speedup",
                                        interval(ratio, 0.007), "win", !noisy && ratio > 1.02)
                            : json_object());
    json_object_set_new(record, "checks",
                        json_pack("{s:i, s:i}", "passed", kernel ? 60 : 7, "total", 60));
    json_object_set_new(record, "stage_ms", stage_times(ms));
    free(tune);
    return record;
}

/* --- evaluations, one after the other --- */

static long duration_ms(const struct pending *item)
{
    if (options.final_ms > 0 && strcmp(text_of(item->request, "effort"), "final") == 0)
        return options.final_ms;
    long room = options.high_ms - options.low_ms + 1;
    return options.low_ms + (long)(hash_of(item->hash, "ms") % (uint64_t)(room > 0 ? room : 1));
}

static void begin(struct pending *item)
{
    item->started_ns = now_ns();
    item->ends_ns = item->started_ns + (uint64_t)duration_ms(item) * 1000000u;
    begun++;
    bool search = strcmp(text_of(item->request, "effort"), "search") == 0;
    if ((options.waits > 0 && begun >= (unsigned long)options.waits) ||
        (options.waits < 0 && !search)) {
        item->stages_said = 3;
        item->ends_ns = item->started_ns + FOR_EVER_NS;
        say(json_pack("{s:O, s:s, s:s, s:s}", "id", json_object_get(item->request, "id"), "event",
                      "stage", "stage", "time", "waits", "another twagent times on core 0"));
    }
    if (options.notes != NULL) {
        FILE *notes = fopen(options.notes, "a");
        if (notes != NULL) {
            fprintf(notes, "%016llx %s %s %lld\n", (unsigned long long)item->hash,
                    text_of(item->request, "effort"), text_of(item->request, "id"),
                    (long long)json_integer_value(json_object_get(item->request, "within_ms")));
            fclose(notes);
        }
    }
}

static void drop_pending(size_t index)
{
    if (pending[index].turn > 0)
        close(pending[index].turn - 1);
    json_decref(pending[index].request);
    pending_count--;
    memmove(&pending[index], &pending[index + 1], (pending_count - index) * sizeof *pending);
    memset(&pending[pending_count], 0, sizeof *pending);
}

/* The last stage takes its part of the whole from where it begins. */
static bool has_turn(struct pending *item, uint64_t now, uint64_t part)
{
    if (options.turn == NULL || item->stages_said < TIMES)
        return true;
    if (item->turn == 0)
        item->turn = open(options.turn, O_RDWR | O_CREAT | O_CLOEXEC, 0600) + 1;
    bool waited = item->waits;
    item->waits = flock(item->turn - 1, LOCK_EX | LOCK_NB) != 0;
    item->ends_ns = now + part;
    if (item->waits && !waited)
        say(json_pack("{s:O, s:s, s:s, s:s}", "id", json_object_get(item->request, "id"), "event",
                      "stage", "stage", "time", "waits", "another twagent times here"));
    return !item->waits;
}

/* Says the stages whose time has come, and at the end the result; true while time is left. */
static bool advance(struct pending *item)
{
    static const char *const stages[STAGES] = {"compile", "check", "time"};
    uint64_t now = now_ns(), whole = (uint64_t)duration_ms(item) * 1000000u;
    while (item->stages_said < STAGES &&
           now >= item->started_ns + whole * item->stages_said * 3 / 10 &&
           has_turn(item, now, whole - whole * TIMES * 3 / 10))
        say(json_pack("{s:O, s:s, s:s}", "id", json_object_get(item->request, "id"), "event",
                      "stage", "stage", stages[item->stages_said++]));
    if (now < item->ends_ns || item->waits)
        return true;
    if (options.dies > 0 && begun % (unsigned long)options.dies == 0)
        _exit(9);
    bool final = strcmp(text_of(item->request, "effort"), "final") == 0;
    int once = final && options.final_dies != NULL
                   ? open(options.final_dies, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)
                   : -1;
    if (once >= 0)
        _exit(9);
    say(json_pack("{s:O, s:s, s:o, s:f}", "id", json_object_get(item->request, "id"), "event",
                  "result", "evaluation", evaluation(item, (long)(whole / 1000000u)), "final_ms",
                  (double)options.says_final));
    return false;
}

static int work(void) /* milliseconds until there is something to do; -1: nothing */
{
    while (pending_count > 0) {
        if (pending[0].ends_ns == 0)
            begin(&pending[0]);
        if (advance(&pending[0])) {
            uint64_t now = now_ns(), whole = (uint64_t)duration_ms(&pending[0]) * 1000000u;
            if (pending[0].waits)
                return TURN_MS;
            uint64_t next = pending[0].stages_said < STAGES
                                ? pending[0].started_ns + whole * pending[0].stages_said * 3 / 10
                                : pending[0].ends_ns;
            return next > now ? (int)((next - now) / 1000000u + 1) : 0;
        }
        drop_pending(0);
    }
    return -1;
}

/* --- requests --- */

static void take_open(const json_t *request)
{
    const char *path = text_of(request, "problem"), *slash = strrchr(path, '/');
    if (options.opens_never != 0)
        return;
    free(problem_name);
    problem_name = strdup(slash != NULL ? slash + 1 : path);
    say(json_pack(
        "{s:O, s:s, s:s, s:{s:s, s:s, s:[i,i], s:s}, s:{s:s, s:s}, s:{s:i, s:i, s:i, s:i}, "
        "s:{s:f, s:f, s:f}, s:s}",
        "id", json_object_get(request, "id"), "event", "result", "host",
        options.host != NULL ? options.host : "", "device", "backend", "cpu", "cpu", cpu_name(),
        "cores_used", 0, 1, "march", "-march=native", "versions", "twagent", "fake", "gcc", "0.0.0",
        "facts", "cores", 2, "l1_bytes", 32768, "l2_bytes", 1048576, "l3_bytes", 33554432,
        "ceilings", "copy_bytes_per_s", 2.5e10, "read_bytes_per_s", 2.1e10, "flops_per_s", 4.7e11,
        "problem", problem_name));
}

static void take_cancel(const json_t *request)
{
    for (size_t i = 0; i < pending_count; i++)
        if (strcmp(text_of(pending[i].request, "id"), text_of(request, "id")) == 0) {
            say_error(pending[i].request, "cancelled", "cancelled");
            drop_pending(i);
            return;
        }
}

static void take_evaluate(json_t *request)
{
    if (pending_count == PENDING_MOST) {
        say_error(request, "io", "too many at once for a fake");
        return;
    }
    char *tune = tune_of(request);
    pending[pending_count++] = (struct pending){
        .request = json_incref(request),
        .hash = hash_of(hash_of(5, tune), text_of(request, "source")),
    };
    free(tune);
}

static void take_line(const char *line, size_t length)
{
    json_t *request = json_loadb(line, length, 0, NULL);
    const char *op = text_of(request, "op");
    if (strcmp(op, "open") == 0)
        take_open(request);
    else if (strcmp(op, "evaluate") == 0)
        take_evaluate(request);
    else if (strcmp(op, "cancel") == 0)
        take_cancel(request);
    else if (strcmp(op, "ping") == 0)
        say(json_pack("{s:O, s:s}", "id", json_object_get(request, "id"), "event", "result"));
    else if (strcmp(op, "check_problem") == 0)
        say(json_pack("{s:O, s:s, s:[], s:b}", "id", json_object_get(request, "id"), "event",
                      "result", "findings", "fit", 1));
    else
        say_error(request, "protocol", "a fake worker knows no such request");
    json_decref(request);
}

static bool take_input(char *input, size_t *length) /* false at its end */
{
    ssize_t got = read(STDIN_FILENO, input + *length, LINE_MOST - *length);
    if (got <= 0)
        return got < 0 && errno == EINTR;
    *length += (size_t)got;
    size_t from = 0;
    for (char *end; (end = memchr(input + from, '\n', *length - from)) != NULL;) {
        take_line(input + from, (size_t)(end - input) - from);
        from = (size_t)(end - input) + 1;
    }
    *length -= from;
    memmove(input, input + from, *length);
    return *length < LINE_MOST;
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i++) {
        const char *value = argv[i + 1];
        char *rest = NULL;
        if (strcmp(argv[i], "--ms") == 0) {
            options.low_ms = strtol(value, &rest, 10);
            options.high_ms = *rest == '-' ? strtol(rest + 1, NULL, 10) : options.low_ms;
        } else if (strcmp(argv[i], "--final-ms") == 0) {
            options.final_ms = strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--final-dies") == 0) {
            options.final_dies = value;
        } else if (strcmp(argv[i], "--dies") == 0) {
            options.dies = strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--waits") == 0) {
            options.waits = strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--opens-never") == 0) {
            options.opens_never = strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--says-final") == 0) {
            options.says_final = strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--unsteady") == 0) {
            options.unsteady = strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--late") == 0) {
            options.late = strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--noisy") == 0) {
            options.noisy = strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--host") == 0) {
            options.host = value;
        } else if (strcmp(argv[i], "--cpu") == 0) {
            options.cpu = value;
        } else if (strcmp(argv[i], "--turn") == 0) {
            options.turn = value;
        } else if (strcmp(argv[i], "--notes") == 0) {
            options.notes = value;
        }
    }
}

int main(int argc, char **argv)
{
    char *input = malloc(LINE_MOST);
    size_t length = 0;
    read_options(argc, argv);
    for (bool open = input != NULL; open;) {
        struct pollfd poll_fd = {.fd = STDIN_FILENO, .events = POLLIN};
        if (poll(&poll_fd, 1, work()) > 0)
            open = take_input(input, &length);
    }
    free(input);
    return 0;
}
