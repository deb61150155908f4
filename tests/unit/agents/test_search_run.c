/* Whole runs on a lane and with a model that are functions here: what is chosen, and that it
 * depends on answers and evaluations alone, not on the order in which they arrive. */
#include "fake_lane.h"

#include "agents/llm/ask.h"
#include "agents/record/record.h"
#include "agents/search/search.h"
#include "base/clock.h"
#include "base/log.h"
#include "store/store.h"

#include <sys/stat.h>
#include <unistd.h>

/* ---- the model ---- */

struct completions {
    struct task task;
    struct timer timer;
    void *queue[QUEUE_MAX];
    size_t count;
};

static const struct err nothing_wrong;

static const char *const ideas[] = {
    "pack panels of the right matrix", "unroll the innermost loop by eight",
    "prefetch rows ahead of use",      "keep accumulators in registers",
    "split work among all cores",      "transpose one operand beforehand",
    "block for the second cache level"};

/* A function of the words alone: whatever the prompt says of the run so far changes the answer. */
static char *words_for(const struct ask *ask)
{
    struct buf text;
    uint64_t drawn = hash_bytes(ask->request.prompt, strlen(ask->request.prompt)).low;
    drawn = hash_bytes(&drawn, sizeof drawn).low + 7 * (uint64_t)ask->sample;
    buf_init(&text, 1 << 14);
    if (strcmp(ask->purpose, "ideas") == 0) {
        buf_add_text(&text, "{\"ideas\": [");
        for (size_t i = 0; i < 3; i++)
            buf_addf(&text, "%s{\"title\": \"%s\", \"category\": \"memory\", \"why\": \"x\"}",
                     i ? ", " : "", ideas[(drawn + 2 * i) % COUNT(ideas)]);
        buf_add_text(&text, "]}");
        return buf_take(&text);
    }
    /* Few numbers: some sources are the same. */
    buf_addf(&text, "```c\n/*---\ntune: {U: [1, 2, 4]}\n---*/\n/* time %d %s */\n",
             (int)(100 + 10 * (drawn % 9)), drawn % 5 == 0 ? "always wrong" : "");
    buf_add_text(&text, "void kernel(const float *A, const float *B, float *C, int64_t M, "
                        "int64_t N, int64_t K)\n{\n}\n```\n");
    return buf_take(&text);
}

static enum task_result ask_step(struct task *task)
{
    struct ask *ask = container_of(task, struct ask, task);
    return ask->completion.text ? TASK_DONE : TASK_WAIT;
}

static enum task_result model_step(struct task *task)
{
    struct completions *model = container_of(task, struct completions, task);
    if (!gathered(&model->timer, task))
        return TASK_WAIT;
    struct ask *ask = pick(model->queue, &model->count);
    char *words = words_for(ask);
    ask->arena = arena_new();
    ask->completion.text = arena_strdup(ask->arena, words);
    ask->completion.finish = "stop";
    mem_free(words);
    task_complete(&ask->task);
    return model->count > 0 ? TASK_AGAIN : TASK_DONE;
}

static const struct task_type model_type = {"model", one_state, no_moves, 1, model_step, NULL};
static const struct task_type ask_type = {"ask", one_state, no_moves, 1, ask_step, NULL};

struct completions *completions_new(struct loop *loop, struct store *store,
                                    struct store_writer *writer,
                                    const struct completions_spec *spec, struct err *err)
{
    (void)loop, (void)store, (void)writer, (void)spec, (void)err;
    return MEM_NEW(struct completions);
}

void ask_start(struct completions *completions, struct ask *ask, struct task *parent,
               const char *id)
{
    assert_true(completions->count < QUEUE_MAX);
    task_start(parent->loop, &ask->task, &ask_type, parent, id);
    task_expect(&ask->task);
    completions->queue[completions->count++] = ask;
    if (completions->count == 1) {
        completions->task = (struct task){0};
        task_start(parent->loop, &completions->task, &model_type, NULL, "model");
    }
}

const char *ask_turns(struct arena *arena, const struct ask *ask)
{
    (void)arena;
    (void)ask;
    return NULL;
}

void ask_free(struct ask *ask)
{
    arena_free(ask->arena);
    *ask = (struct ask){0};
}

void ask_bound(struct ask *ask)
{
    (void)ask;
}

int ask_fit(const struct model *model, struct completion_request *request, struct err *err)
{
    (void)model, (void)request, (void)err;
    return 0;
}

void completions_free(struct completions *completions)
{
    mem_free(completions);
}

void completions_hold(struct completions *completions, bool held)
{
    (void)completions, (void)held;
}

void completions_hurry(struct completions *completions)
{
    (void)completions;
}

void completions_say_batches(const struct completions *completions, struct buf *out)
{
    (void)completions, (void)out;
}

bool completions_held(const struct completions *completions)
{
    (void)completions;
    return false;
}

size_t completions_models(const struct completions *completions, struct model_view *views,
                          size_t most)
{
    (void)completions, (void)views, (void)most;
    return 0;
}

void completions_note_nothing(const struct ask *ask, const char *reason)
{
    (void)ask, (void)reason;
}

size_t completions_causes(const struct completions *completions, const char *name,
                          struct cause causes[CAUSES_MOST])
{
    (void)completions, (void)name, (void)causes;
    return 0;
}

bool completions_avoided(struct completions *completions, const struct model *model)
{
    (void)completions, (void)model;
    return false;
}

size_t completions_endpoints(const struct completions *completions, struct endpoint_view *views,
                             size_t most)
{
    (void)completions, (void)views, (void)most;
    return 0;
}

const struct err *completions_blocked(const struct completions *completions,
                                      const struct model *model)
{
    (void)completions, (void)model;
    return &nothing_wrong;
}

struct completions_totals completions_totals(const struct completions *completions)
{
    (void)completions;
    return (struct completions_totals){0};
}

/* ---- a run ---- */

struct root {
    struct task task;
    struct store *store;
    const struct search_options *options;
    struct search *search;
};

static enum task_result root_step(struct task *task)
{
    struct root *root = container_of(task, struct root, task);
    struct err err = {0};
    if (!root->search &&
        search_start(task->loop, task, root->store, root->options, &root->search, &err) != 0)
        fail_msg("%s", err.message);
    return search_done(root->search) ? TASK_DONE : TASK_WAIT;
}

struct run {
    char folder[40], problem[60];
    struct store *store;
    struct arena *arena;
    struct run_record record;
    struct buf tree; /* every candidate in a line */
};

static void put(const char *folder, const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void setup(struct run *run)
{
    static const char *const folders[] = {"", "/starts", "/starts/cpu"};
    struct err err;
    *run = (struct run){.folder = "/tmp/test-search-XXXXXX", .arena = arena_new()};
    assert_non_null(mkdtemp(run->folder));
    for (size_t i = 0; i < COUNT(folders); i++) {
        snprintf(run->problem, sizeof run->problem, "%s/p%s", run->folder, folders[i]);
        assert_int_equal(mkdir(run->problem, 0700), 0);
    }
    snprintf(run->problem, sizeof run->problem, "%s/p", run->folder);
    put(run->problem, "ref_impl.py", "def reference(A):\n    return A\n");
    put(run->problem, "spec.yaml",
        "name: p\ndescription: none\ndims: {N: 8}\ninputs: {A: {shape: [N], dtype: float32}}\n"
        "outputs: {B: {shape: [N], dtype: float32}}\nreference: ref_impl.py\nflops: N\n"
        "tolerance: auto\ncheck: [{N: 1}]\n");
    if (store_open(run->folder, true, false, &run->store, &err) != 0)
        fail_msg("%s", err.message);
    buf_init(&run->tree, 1 << 20);
}

/* What `words` say of its time stands in the source. */
static void put_start(const struct run *run, const char *name, const char *words)
{
    char path[80], text[300];
    snprintf(path, sizeof path, "starts/cpu/%s", name);
    snprintf(text, sizeof text,
             "/* %s */\nvoid kernel(const float *A, float *B, int64_t N)\n{\n}\n", words);
    put(run->problem, path, text);
}

static bool add_line(void *context, const char *key, const char *value, size_t length)
{
    struct run *run = context;
    struct candidate_record record;
    struct err err;
    assert_int_equal(candidate_record_decode(run->arena, value, length, &record, &err), 0);
    buf_addf(&run->tree, "%s %s %s %s %s %s %s %s %.0f\n", key, record.idea, record.parent,
             record.source, record.tune, record.state, record.duplicate_of, record.reason,
             record.time_ns);
    return true;
}

static void go(struct run *run, struct search_options options)
{
    struct root root = {.store = run->store, .options = &options};
    static const struct task_type type = {"root", one_state, no_moves, 1, root_step, NULL};
    struct loop *loop = loop_new();
    struct buf text;
    struct err err;
    options.problem = run->problem;
    options.backend = "cpu";
    options.strategy = STRATEGY_BEAM;
    options.select = 0.5;
    options.seed = 7;
    options.final = true;
    task_start(loop, &root.task, &type, NULL, "root");
    loop_run(loop);
    if (search_error(root.search)->code)
        fail_msg("%s", search_error(root.search)->message);
    search_free(root.search);
    loop_free(loop);
    buf_init(&text, 1 << 20);
    assert_int_equal(store_get(run->store, STORE_RUNS, "r1", &text, &err), 0);
    assert_int_equal(run_record_decode(run->arena, arena_strdup(run->arena, buf_text(&text)),
                                       text.length, &run->record, &err),
                     0);
    assert_int_equal(store_scan(run->store, STORE_CANDIDATES, "r1-", add_line, run, &err), 0);
    buf_free(&text);
}

static void teardown(struct run *run)
{
    char command[80];
    store_close(run->store);
    buf_free(&run->tree);
    arena_free(run->arena);
    snprintf(command, sizeof command, "rm -rf %s", run->folder);
    assert_int_equal(system(command), 0); /* NOLINT */
}

/* ---- the champion ---- */

/* The name of the start that is the champion. */
static void expect_champion(const char *const starts[3], const char *name)
{
    struct run run;
    struct buf text;
    struct err err;
    struct candidate_record record;
    setup(&run);
    put_start(&run, "a.c", starts[0]);
    put_start(&run, "b.c", starts[1]);
    put_start(&run, "c.c", starts[2]);
    go(&run, (struct search_options){.branching = 3, .implementations = 1, .rounds = 1});
    assert_true(run.record.verified);
    buf_init(&text, 1 << 16);
    assert_int_equal(store_get(run.store, STORE_CANDIDATES, run.record.best, &text, &err), 0);
    assert_int_equal(
        candidate_record_decode(run.arena, buf_text(&text), text.length, &record, &err), 0);
    assert_string_equal(record.name, name);
    buf_free(&text);
    teardown(&run);
}

/* a.c has the best ratio, by luck, b.c the lowest upper end of its time, who wins in turns with
 * the others it is, unless that one is found wrong in its final measurement. */
static void test_champion(void **state)
{
    (void)state;
    expect_champion((const char *const[]){"time 100 high 190 true 110", "time 105 true 109",
                                          "time 107 true 90"},
                    "c.c");
    expect_champion((const char *const[]){"time 100 high 190 true 110", "time 105 true 109",
                                          "time 107 true 90, wrong late"},
                    "b.c");
    expect_champion((const char *const[]){"time 100 high 190 true 108", "time 105 true 109",
                                          "time 107 true 120"},
                    "a.c");
}

/* A run's time counts from when its command began: here from when the machine did. */
static void test_time_before(void **state)
{
    (void)state;
    for (int begun = 0; begun < 2; begun++) {
        struct run run;
        const double up_ms = (double)clock_now_ns() / 1e6;
        setup(&run);
        put_start(&run, "a.c", "time 100");
        go(&run,
           (struct search_options){
               .branching = 1, .implementations = 1, .rounds = 1, .begun_ns = (uint64_t)begun});
        assert_true((run.record.elapsed_ms >= up_ms) == (begun > 0));
        teardown(&run);
    }
}

/* ---- the tree ---- */

static void plant(struct run *run, bool last)
{
    static const struct model model = {.name = "m",
                                       .provider = "openai",
                                       .wire_name = "m",
                                       .temperature = -1,
                                       .prompt_price = -1,
                                       .completion_price = -1,
                                       .weight = 1};
    static const struct models models = {.items = &model, .count = 1};
    last_first = last;
    setup(run);
    put_start(run, "a.c", "time 300");
    go(run, (struct search_options){.branching = 3,
                                    .implementations = 3,
                                    .rounds = 4,
                                    .repairs = 1,
                                    .tuning = 4,
                                    .idea_models = &models});
    last_first = false;
}

/* The same seed, answers and evaluations: the same ideas, parents, sources and twins, whichever
 * answer came first. */
static void test_order(void **state)
{
    struct run one, other;
    (void)state;
    plant(&one, false);
    plant(&other, true);
    if (strcmp(buf_text(&one.tree), buf_text(&other.tree)) != 0)
        fail_msg("first come, first answered:\n%s\nthe last one first:\n%s", buf_text(&one.tree),
                 buf_text(&other.tree));
    assert_string_equal(one.record.best, other.record.best);
    assert_int_equal(one.record.kept, other.record.kept);
    assert_non_null(strstr(buf_text(&one.tree), "the same source and numbers as r1-c"));
    assert_true(one.record.round == 4);
    teardown(&one);
    teardown(&other);
}

int main(void)
{
    setenv("TWAGENT_DATA", TEST_SOURCE_DIR, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_champion),
        cmocka_unit_test(test_time_before),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
