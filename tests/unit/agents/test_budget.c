/* The ledger: what is reserved, settled, charged and released, over a kill, and with the engine in
 * front of it. */
#include "completion_check.h"

static const struct model priced = {.name = "m",
                                    .provider = "openai",
                                    .wire_name = "m",
                                    .codec = &codec_openai,
                                    .prompt_price = 2, /* micro-dollars a token */
                                    .completion_price = 10,
                                    .weight = 1,
                                    .where = "models.yaml:12"};

struct ledger {
    struct store *store;
    struct budget *budget;
};

static struct ledger ledger_open(const char *run, int64_t micro_dollars, int64_t tokens)
{
    struct ledger ledger;
    const struct budget_caps caps = {micro_dollars, tokens};
    const struct models models = {&priced, 1};
    const struct models *const lists[] = {&models};
    struct err err;
    if (store_open(folder, true, false, &ledger.store, &err) != 0 ||
        budget_open(ledger.store, run, &caps, lists, 1, &ledger.budget, &err) != 0)
        fail_msg("%s", err.message);
    return ledger;
}

static void ledger_close(struct ledger *ledger) /* as a kill does: nothing is written */
{
    budget_free(ledger->budget);
    store_close(ledger->store);
}

static enum budget_answer reserve(struct ledger *ledger, int64_t prompt, int64_t most,
                                  struct spend *spend)
{
    struct store_batch *batch = store_batch_new();
    struct err err;
    enum budget_answer answer =
        budget_reserve(ledger->budget, &priced, "r1-c1", "key", prompt, most, spend, batch);
    assert_int_equal(store_batch_empty(batch), answer != BUDGET_OK);
    if (answer == BUDGET_OK)
        assert_int_equal(store_commit(ledger->store, batch, &err), 0);
    store_batch_free(batch);
    return answer;
}

enum { SETTLE, CHARGE, CUT, RELEASE };

static void close_spend(struct ledger *ledger, struct spend *spend, int how, int64_t prompt,
                        int64_t completion)
{
    const struct completion answer = {
        .text = (char[]){"words"}, .prompt_tokens = prompt, .completion_tokens = completion};
    struct store_batch *batch = store_batch_new();
    struct err err;
    if (how == SETTLE)
        budget_settle(ledger->budget, spend, &answer, batch);
    else if (how == CHARGE)
        budget_charge(ledger->budget, spend, batch);
    else if (how == CUT)
        budget_cut(ledger->budget, spend, &answer, batch);
    else
        budget_release(ledger->budget, spend, batch);
    assert_int_equal(store_commit(ledger->store, batch, &err), 0);
    assert_false(spend->open);
    store_batch_free(batch);
}

static void expect(const struct ledger *ledger, int64_t micro_dollars, int64_t tokens,
                   int64_t reserved)
{
    struct budget_totals totals = budget_totals(ledger->budget);
    assert_int_equal(totals.micro_dollars, micro_dollars);
    assert_int_equal(totals.tokens, tokens);
    assert_int_equal(totals.reserved_micro_dollars, reserved);
}

static void test_ends(void **state)
{
    (void)state;
    struct ledger ledger = ledger_open("r1", 10000, 0);
    struct spend spends[3] = {{.open = false}};
    for (size_t i = 0; i < 3; i++) /* 100 * 2 + 50 * 10 each */
        assert_int_equal(reserve(&ledger, 100, 50, &spends[i]), BUDGET_OK);
    expect(&ledger, 0, 0, 2100);
    close_spend(&ledger, &spends[0], SETTLE, 20, 30);
    assert_int_equal(spends[0].micro_dollars, 20 * 2 + 30 * 10);
    expect(&ledger, 340, 50, 1400);
    close_spend(&ledger, &spends[1], CHARGE, 0, 0);
    expect(&ledger, 1040, 200, 700);
    close_spend(&ledger, &spends[2], RELEASE, 0, 0);
    expect(&ledger, 1040, 200, 0);
    ledger_close(&ledger);
    ledger = ledger_open("r1", 10000, 0); /* as it was left */
    expect(&ledger, 1040, 200, 0);
    struct budget_totals totals = budget_totals(ledger.budget);
    assert_int_equal(totals.settled, 1);
    assert_int_equal(totals.charged, 1);
    assert_int_equal(totals.released, 1);
    ledger_close(&ledger);
}

/* A usage that cannot be is none: prompt and text are charged, and the rest of the reservation
 * stays in doubt. One beyond what was allowed is believed. */
static void test_usage(void **state)
{
    (void)state;
    static const struct {
        int64_t prompt, completion, charged, doubt;
    } rows[] = {{100, 50, 700, 0}, {1, 1, 12, 0},      {-1, -1, 60, 640},
                {20, -1, 50, 650}, {-5, 30, 350, 350}, {0, 30, 350, 350},
                {20, 0, 50, 650},  {101, 30, 502, 0},  {INT64_MAX, INT64_MAX, 60, 640},
                {20, 151, 1550, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char run[8];
        snprintf(run, sizeof run, "r%zu", i + 1);
        struct ledger ledger = ledger_open(run, 100000, 0);
        struct spend spend = {.open = false};
        assert_int_equal(reserve(&ledger, 100, 50, &spend), BUDGET_OK);
        close_spend(&ledger, &spend, SETTLE, rows[i].prompt, rows[i].completion);
        struct budget_totals totals = budget_totals(ledger.budget);
        if (totals.micro_dollars != rows[i].charged || totals.doubt_micro_dollars != rows[i].doubt)
            fail_msg("row %zu: %lld, %lld in doubt", i, (long long)totals.micro_dollars,
                     (long long)totals.doubt_micro_dollars);
        ledger_close(&ledger);
    }
}

/* What a provider says that it bills is paid, where that is more; then nothing is in doubt. A model
 * that is known to reason has as much of it in each estimate, until its answers show their own. */
static void test_bill(void **state)
{
    (void)state;
    static const struct {
        int64_t prompt, completion, billed, charged, doubt;
        double reasoning;
    } rows[] = {{20, 30, 400, 400, 0, 0},  {20, 30, 100, 340, 0, 0}, {-1, -1, 333, 333, 0, 0},
                {-1, -1, 0, 70, 630, 1},   {-1, -1, 0, 90, 610, 3},  {20, 30, 0, 340, 0, 3},
                {20, 30, 5000, 5000, 0, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char run[8];
        snprintf(run, sizeof run, "r%zu", i + 1);
        struct ledger ledger = ledger_open(run, 100000, 0);
        struct model model = priced;
        struct spend spend = {.open = false};
        model.reasoning = rows[i].reasoning;
        struct store_batch *batch = store_batch_new();
        assert_int_equal(budget_reserve(ledger.budget, &model, "a", "c", 100, 50, &spend, batch),
                         BUDGET_OK);
        const struct completion answer = {.text = (char[]){"words"},
                                          .prompt_tokens = rows[i].prompt,
                                          .completion_tokens = rows[i].completion,
                                          .billed_micro = rows[i].billed};
        budget_settle(ledger.budget, &spend, &answer, batch);
        struct budget_totals totals = budget_totals(ledger.budget);
        if (totals.micro_dollars != rows[i].charged || totals.doubt_micro_dollars != rows[i].doubt)
            fail_msg("row %zu: %lld, %lld in doubt", i, (long long)totals.micro_dollars,
                     (long long)totals.doubt_micro_dollars);
        store_batch_free(batch);
        ledger_close(&ledger);
    }
}

/* What may have been thought unseen keeps its room under the cap, over a kill too. */
static void test_doubt(void **state)
{
    (void)state;
    struct ledger ledger = ledger_open("r1", 2000, 0);
    struct spend spend = {.open = false};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(reserve(&ledger, 100, 50, &spend), BUDGET_OK);
        close_spend(&ledger, &spend, SETTLE, -1, -1);
    }
    for (int again = 0; again < 2; again++) {
        expect(&ledger, 120, 52, 0);
        assert_int_equal(budget_totals(ledger.budget).doubt_tokens, 248);
        assert_int_equal(reserve(&ledger, 100, 50, &spend), BUDGET_OVER); /* 1400 may be gone */
        assert_string_equal(budget_reason(ledger.budget),
                            "another request could pass $0.0020, with $0.0013 in doubt for answers "
                            "that said no usage");
        ledger_close(&ledger);
        ledger = ledger_open("r1", 2000, 0);
    }
    ledger_close(&ledger);
}

/* A provider that bills more than it was allowed: its later reservations are larger, over a kill
 * too, and near the cap one request at a time is out, so that the bill passes it by one at most. */
static void test_overrun(void **state)
{
    (void)state;
    struct ledger ledger = ledger_open("r1", 10000, 0);
    struct spend one = {.open = false}, two = {.open = false};
    assert_int_equal(reserve(&ledger, 100, 50, &one), BUDGET_OK);
    close_spend(&ledger, &one, SETTLE, 300, 200); /* 600 + 2000, where 700 were reserved */
    expect(&ledger, 2600, 500, 0);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(reserve(&ledger, 100, 50, &one), BUDGET_OK);
        assert_int_equal(one.micro_dollars, 2600);
        assert_int_equal(reserve(&ledger, 100, 50, &two), BUDGET_WAIT); /* it may be 5200 each */
        close_spend(&ledger, &one, RELEASE, 0, 0);
        ledger_close(&ledger);
        ledger = ledger_open("r1", 10000, 0);
    }
    for (int64_t spent = 5200; spent <= 7800; spent += 2600) {
        assert_int_equal(reserve(&ledger, 100, 50, &one), BUDGET_OK);
        close_spend(&ledger, &one, SETTLE, 300, 200);
        expect(&ledger, spent, spent / 2600 * 500, 0);
    }
    assert_string_equal(budget_reason(ledger.budget), "");
    assert_int_equal(reserve(&ledger, 100, 50, &one), BUDGET_OVER);
    assert_string_equal(budget_reason(ledger.budget), "another request could pass $0.01");
    ledger_close(&ledger);
}

/* What came of a stream is charged, in this model's own tokens a byte; before it has shown any, a
 * token for four bytes. What the stream said of its usage goes before. */
static void test_cut(void **state)
{
    (void)state;
    struct ledger ledger = ledger_open("r1", 0, 0);
    struct spend spend = {.open = false};
    assert_int_equal(reserve(&ledger, 400, 50, &spend), BUDGET_OK);
    close_spend(&ledger, &spend, CUT, -1, -1); /* "words": 100 and 1 tokens */
    expect(&ledger, 100 * 2 + 1 * 10, 101, 0);
    assert_int_equal(reserve(&ledger, 400, 50, &spend), BUDGET_OK);
    close_spend(&ledger, &spend, CUT, 80, 3);
    expect(&ledger, 210 + 80 * 2 + 3 * 10, 184, 0);
    assert_int_equal(reserve(&ledger, 400, 50, &spend), BUDGET_OK);
    close_spend(&ledger, &spend, SETTLE, 120, 20); /* 0.3 and 4 tokens a byte */
    assert_int_equal(reserve(&ledger, 200, 50, &spend), BUDGET_OK);
    close_spend(&ledger, &spend, CUT, -1, -1);
    assert_int_equal(spend.tokens, 60 + 20);
    assert_int_equal(budget_totals(ledger.budget).charged, 3);
    assert_int_equal(budget_totals(ledger.budget).unknown_tokens, 0);
    ledger_close(&ledger);
}

/* What a killed program left reserved may have been spent: it is, once. */
static void test_killed(void **state)
{
    (void)state;
    struct ledger ledger = ledger_open("r1", 100000, 0);
    struct spend spends[12] = {{.open = false}};
    for (size_t i = 0; i < 12; i++)
        assert_int_equal(reserve(&ledger, 100, 50, &spends[i]), BUDGET_OK);
    close_spend(&ledger, &spends[4], SETTLE, 20, 30);
    ledger_close(&ledger);
    for (int i = 0; i < 3; i++) { /* however often it is gone on with */
        ledger = ledger_open("r1", 100000, 0);
        expect(&ledger, 340 + 11 * 700, 50 + 11 * 150, 0);
        assert_int_equal(budget_totals(ledger.budget).unknown_micro_dollars, 11 * 700);
        assert_int_equal(budget_totals(ledger.budget).charged, 11);
        ledger_close(&ledger);
    }
    ledger = ledger_open("r1", 100000, 0);
    struct spend next = {.open = false};
    assert_int_equal(reserve(&ledger, 100, 50, &next), BUDGET_OK);
    assert_string_equal(next.key, "r1-13");
    ledger_close(&ledger);
    ledger = ledger_open("r10", 10000, 0); /* another run's ledger */
    expect(&ledger, 0, 0, 0);
    ledger_close(&ledger);
}

/* Reservations never exceed the cap; who finds no room waits, unless the cap itself is reached. */
/* Prompt and answer of 100 and 10 tokens, at 2 and 10 micro-dollars: 300, but for the cache. */
static void test_cache(void **state)
{
    (void)state;
    static const struct {
        int64_t cached, written;
        double cached_price, written_price;
        int64_t charged, reserved;
    } rows[] = {{0, 0, .2, 2.5, 300, 750},   {80, 0, .2, 2.5, 156, 750}, {0, 80, .2, 2.5, 340, 750},
                {80, 20, .2, 2.5, 166, 750}, {80, 0, -1, -1, 300, 700},  {101, 0, .2, -1, 300, 700},
                {90, 20, .2, 2.5, 300, 750}, {-5, 0, .2, -1, 300, 700},  {100, 0, 0, 0, 100, 700}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char run[8];
        snprintf(run, sizeof run, "r%zu", i + 1);
        struct ledger ledger = ledger_open(run, 100000, 0);
        struct model model = priced;
        struct spend spend = {.open = false};
        model.cached_price = rows[i].cached_price;
        model.written_price = rows[i].written_price;
        struct store_batch *batch = store_batch_new();
        assert_int_equal(budget_reserve(ledger.budget, &model, "a", "c", 100, 50, &spend, batch),
                         BUDGET_OK);
        assert_int_equal(spend.micro_dollars, rows[i].reserved);
        const struct completion answer = {.text = (char[]){"words"},
                                          .prompt_tokens = 100,
                                          .completion_tokens = 10,
                                          .cached_tokens = rows[i].cached,
                                          .written_tokens = rows[i].written};
        budget_settle(ledger.budget, &spend, &answer, batch);
        if (budget_totals(ledger.budget).micro_dollars != rows[i].charged)
            fail_msg("row %zu: %lld", i, (long long)budget_totals(ledger.budget).micro_dollars);
        store_batch_free(batch);
        ledger_close(&ledger);
    }
}

static void test_caps(void **state)
{
    (void)state;
    static const struct {
        int64_t micro_dollars, tokens;
    } rows[] = {{1512, 0}, {0, 322}, {1512, 322}, {1512, 100000}, {100000, 322}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char run[8];
        snprintf(run, sizeof run, "r%zu", i + 1);
        struct ledger ledger = ledger_open(run, rows[i].micro_dollars, rows[i].tokens);
        struct spend one = {.open = false}, two = {.open = false}, three = {.open = false};
        assert_true(budget_capped(ledger.budget));
        assert_int_equal(reserve(&ledger, 100, 50, &one), BUDGET_OK);
        assert_int_equal(reserve(&ledger, 100, 50, &two), BUDGET_WAIT); /* it might bill more */
        close_spend(&ledger, &one, SETTLE, 1, 1);
        assert_int_equal(reserve(&ledger, 100, 50, &one), BUDGET_OK);
        assert_int_equal(reserve(&ledger, 100, 50, &two), BUDGET_OK);
        assert_int_equal(reserve(&ledger, 100, 50, &three), BUDGET_WAIT);
        assert_string_equal(budget_reason(ledger.budget), "");
        close_spend(&ledger, &one, SETTLE, 1, 1);
        assert_int_equal(reserve(&ledger, 100, 50, &three), BUDGET_OK);
        close_spend(&ledger, &two, CHARGE, 0, 0);
        close_spend(&ledger, &three, CHARGE, 0, 0);
        assert_int_equal(reserve(&ledger, 100, 50, &one), BUDGET_OVER);
        assert_non_null(strstr(budget_reason(ledger.budget), "another request could pass"));
        ledger_close(&ledger);
        ledger = ledger_open(run, rows[i].micro_dollars, rows[i].tokens); /* a resume keeps it */
        assert_int_equal(reserve(&ledger, 100, 50, &one), BUDGET_OVER);
        ledger_close(&ledger);
    }
}

static void test_prices(void **state)
{
    (void)state;
    const struct budget_caps dollars = {1000, 0}, tokens = {0, 1000};
    struct model items[] = {priced, priced, {.name = "mail", .provider = "mailbox"}};
    const struct models models = {items, 3};
    const struct models *const lists[] = {&models, NULL};
    struct store *store;
    struct budget *budget;
    struct err err;
    items[1].name = "dear";
    items[1].completion_price = -1;
    assert_int_equal(store_open(folder, true, false, &store, &err), 0);
    assert_int_equal(budget_open(store, "r1", &dollars, lists, 2, &budget, &err), -1);
    assert_int_equal(err.code, ERR_USAGE);
    assert_non_null(strstr(err.message, "dear"));
    assert_non_null(strstr(err.message, "models.yaml:12"));
    assert_int_equal(budget_open(store, "r1", &tokens, lists, 2, &budget, &err), 0);
    assert_true(budget_totals(budget).unpriced);
    budget_free(budget);
    store_close(store);
}

/* ---- with the engine ---- */

enum { WORST = 512 + 5 + 100 }; /* tokens of "hello" and an answer of at most 100 */

static struct scene *scene_of(const struct model *model, size_t count, int64_t tokens)
{
    struct scene *scene = scene_new(count);
    for (size_t i = 0; i < count; i++) {
        scene_ask(scene, i, model, "hello");
        scene->asks[i].request.max_tokens = 100;
    }
    scene->caps.tokens = tokens;
    return scene;
}

/* Room for two at once: the others wait for what those leave, in their order, and all are
 * answered. */
static void test_engine_waits(void **state)
{
    (void)state;
    struct provider provider = provider_start(NULL, "good");
    const struct model model = model_at(provider.url, "good");
    struct scene *scene = scene_of(&model, 8, 2 * WORST + 600);
    scene_run(scene);
    for (size_t i = 0; i < 8; i++)
        if (scene->asks[i].err.code != ERR_NONE)
            fail_msg("%zu: %s", i, scene->asks[i].err.message);
    assert_int_equal(scene->spent.settled, 8);
    assert_int_equal(scene->spent.reserved_tokens, 0);
    assert_true(scene->spent.tokens > 0 && scene->spent.tokens <= scene->caps.tokens);
    scene_free(scene);
    provider_stop(&provider);
}

/* No usage: each costs what was reserved; the third finds the cap, and so does who comes after. No
 * request is sent past it, and none after a resume, but what is there is had for nothing. */
static void test_engine_over(void **state)
{
    (void)state;
    static const char *const faults[] = {"usage text=missing times=0", NULL};
    struct provider provider = provider_start(faults, "good");
    const struct model model = model_at(provider.url, "good");
    for (int again = 0; again < 2; again++) {
        struct scene *scene = scene_of(&model, 6, 2 * WORST + 600);
        scene_run(scene);
        int answered = 0, over = 0;
        for (size_t i = 0; i < 6; i++) {
            answered += scene->asks[i].err.code == ERR_NONE;
            over += scene->asks[i].err.code == ERR_LIMIT;
        }
        assert_int_equal(answered, 2);
        assert_int_equal(over, 4);
        assert_int_equal(scene->totals.requests, again ? 0 : 2);
        assert_int_equal(scene->totals.from_store, again ? 2 : 0);
        assert_true(scene->spent.tokens > 0 && scene->spent.tokens < WORST); /* no usage is said */
        assert_int_equal(scene->spent.tokens + scene->spent.doubt_tokens, 2 * WORST);
        scene_free(scene);
    }
    provider_stop(&provider);
}

/* A status other than 200 and a refused connection cost nothing, a lost answer what was reserved.
 */
static void test_engine_faults(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        int64_t charged, released;
    } rows[] = {
        {"status code=500", 0, 1}, {"status code=429", 0, 1},  {"reset after=0", 0, 1},
        {"reset after=300", 1, 0}, {"close after=300", 1, 0},  {"stall after=300", 1, 0},
        {"truncate", 1, 0},        {"error code=503", -1, -1}, {"status code=529 times=2", 0, 2}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *const faults[] = {rows[i].fault, NULL};
        struct provider provider = provider_start(faults, "good");
        const struct model model = model_at(provider.url, "good");
        struct scene *scene = scene_of(&model, 1, 100000);
        struct err err;
        scene_leap_over(scene, rows[i].fault);
        scene_run(scene);
        assert_int_equal(scene->asks[0].err.code, ERR_NONE);
        assert_int_equal(scene->spent.settled, 1);
        if (rows[i].charged >= 0 &&
            (scene->spent.charged != rows[i].charged || scene->spent.released != rows[i].released))
            fail_msg("%s: %lld charged, %lld released", rows[i].fault,
                     (long long)scene->spent.charged, (long long)scene->spent.released);
        assert_int_equal(scene->spent.charged + scene->spent.released, scene->totals.requests - 1);
        scene_free(scene);
        provider_stop(&provider);
        assert_int_equal(file_remove_tree(folder, &err), 0);
    }
    const struct model nobody = model_at("http://127.0.0.1:1/v1", "good");
    struct scene *scene = scene_of(&nobody, 1, 100000);
    scene_run(scene);
    assert_int_equal(scene->asks[0].err.code, ERR_NETWORK);
    assert_int_equal(scene->spent.tokens, 0);
    assert_int_equal(scene->spent.released, quick.tries);
    scene_free(scene);
}

/* Stopped in mid-answer: charged, and on disk before the asker knows. */
static void test_engine_cancelled(void **state)
{
    (void)state;
    static const char *const faults[] = {"stall after=300 times=0", NULL};
    struct provider provider = provider_start(faults, "good");
    const struct model model = model_at(provider.url, "good");
    struct scene *scene = scene_of(&model, 4, 12 * WORST);
    scene->spec.in_flight = 2;
    scene->act_after_ms = 20, scene->act = scene_cancel_begun;
    scene_run(scene);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(scene->asks[i].err.code, ERR_CANCELLED);
    assert_int_equal(scene->spent.charged, 2);
    int64_t spent = scene->spent.tokens;
    assert_true(spent > 0 && spent <= 2 * WORST);
    assert_int_equal(scene->spent.reserved_tokens, 0);
    scene_free(scene);
    struct ledger ledger = ledger_open("r1", 0, 12 * WORST);
    assert_int_equal(budget_totals(ledger.budget).tokens, spent);
    ledger_close(&ledger);
    provider_stop(&provider);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(test_ends),          ENGINE_TEST(test_usage),
        ENGINE_TEST(test_bill),          ENGINE_TEST(test_cache),
        ENGINE_TEST(test_doubt),         ENGINE_TEST(test_overrun),
        ENGINE_TEST(test_cut),           ENGINE_TEST(test_killed),
        ENGINE_TEST(test_caps),          ENGINE_TEST(test_prices),
        ENGINE_TEST(test_engine_waits),  ENGINE_TEST(test_engine_over),
        ENGINE_TEST(test_engine_faults), ENGINE_TEST(test_engine_cancelled)};
    setenv("no_proxy", "*", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
