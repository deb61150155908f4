/* Endpoints: limited, parked, blocked or with an open breaker, with everybody that waits there. */
#include "completion_check.h"

#include "agents/llm/endpoint.h"
#include "base/clock.h"

static const struct retry_policy policy = {.tries = 4,
                                           .base_ms = 2,
                                           .cap_ms = 8,
                                           .honour_ms = 100,
                                           .break_after = 3,
                                           .probe_ms = 20,
                                           .probe_cap_ms = 40};

/* A server whose certificate nobody vouches for. */
static struct provider stranger_start(void)
{
    static const char *const argv[] = {
        "/usr/bin/python3", TEST_SOURCE_DIR "/tests/fakes/fake_tls.py", "http/1.1", NULL};
    return provider_of(argv, "https");
}

static struct scene *scene_of(const struct model *model, size_t count, unsigned in_flight)
{
    struct scene *scene = scene_new(count);
    for (size_t i = 0; i < count; i++)
        scene_ask(scene, i, model, "hello");
    scene->spec.policy = &policy;
    scene->spec.in_flight = in_flight;
    return scene;
}

static void all_answered(const struct scene *scene)
{
    for (size_t i = 0; i < scene->count; i++)
        if (scene->asks[i].err.code != ERR_NONE)
            fail_msg("ask %zu: %s", i, scene->asks[i].err.message);
}

/* One 429 slows everybody: nothing is sent until the time it asked for. */
static void test_limited(void **state)
{
    (void)state;
    static const char *const faults[] = {"status code=429 ms=60", NULL};
    struct provider provider = provider_start(faults, "good");
    const struct model model = model_at(provider.url, "good");
    struct scene *scene = scene_of(&model, 6, 1);
    uint64_t started = clock_now_ms();
    scene_run(scene);
    all_answered(scene);
    assert_int_equal(scene->totals.requests, 7); /* six, and the one that was told to wait */
    assert_true(clock_now_ms() - started >= 60); /* a bound from below: never undercut */
    assert_int_equal(events_of(&scene->events, "provider.limited"), 1);
    assert_int_equal(events_of(&scene->events, "provider.ready"), 1);
    assert_int_equal(scene->endpoints[0].state, ENDPOINT_READY);
    scene_free(scene);
    provider_stop(&provider);
}

/* More patience than ours is asked for: everybody waits, and goes on by themselves. */
static void test_parked(void **state)
{
    (void)state;
    static const char *const faults[] = {"status code=429 ms=150", NULL};
    struct provider provider = provider_start(faults, "good");
    const struct model model = model_at(provider.url, "good");
    struct scene *scene = scene_of(&model, 5, 2);
    scene_run(scene);
    all_answered(scene);
    assert_int_equal(events_of(&scene->events, "provider.parked"), 1);
    assert_int_equal(events_of(&scene->events, "provider.ready"), 1);
    scene_free(scene);
    provider_stop(&provider);
}

static void look_at_parked(struct scene *scene, int times)
{
    struct endpoint_view view;
    (void)times;
    if (completions_endpoints(scene->completions, &view, 1) == 0 || view.state != ENDPOINT_PARKED)
        return;
    assert_true(view.until_wall_ms > view.since_wall_ms + 80000000); /* a day, at most */
    assert_true(view.until_wall_ms <= view.since_wall_ms + 86400000 + 1000);
    assert_non_null(strstr(view.name, "openai http://127.0.0.1:"));
    assert_non_null(strstr(view.reason, "429"));
    for (size_t i = 0; i < scene->count; i++)
        task_cancel(&scene->asks[i].task);
}

/* 10^9 seconds are a day; who waits for that can be stopped. */
static void test_parked_for_a_day(void **state)
{
    (void)state;
    static const char *const faults[] = {"status code=429 text=1000000000", NULL};
    struct provider provider = provider_start(faults, "good");
    const struct model model = model_at(provider.url, "good");
    struct scene *scene = scene_of(&model, 3, 1);
    scene->act_after_ms = 5;
    scene->act = look_at_parked;
    scene_run(scene);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(scene->asks[i].err.code, ERR_CANCELLED);
    assert_int_equal(scene->totals.requests, 1);
    scene_free(scene);
    provider_stop(&provider);
}

/* With another who can be asked nobody waits for an endpoint that is parked or whose breaker is
 * open, and nobody waits for ever for one that is silent; without, they wait. */
static void test_moved(void **state)
{
    (void)state;
    static const char *const ends[] = {"status code=429 text=inf times=0",
                                       "status code=503 times=0",
                                       "status code=429 text=60 times=0"};
    static const enum endpoint_state states[] = {ENDPOINT_PARKED, ENDPOINT_BREAKER_OPEN,
                                                 ENDPOINT_LIMITED};
    for (size_t row = 0; row < COUNT(ends); row++) {
        struct err err;
        const char *const faults[] = {ends[row], NULL};
        struct provider one = provider_start(faults, "good"), two = provider_start(NULL, "good");
        struct model items[] = {model_at(one.url, "good"),
                                model_at(two.url, "good"),
                                {.name = "box", .provider = "mailbox", .weight = 1}};
        const struct models both = {.items = items, .count = 3}, alone = {items, 1};
        struct retry_policy soon = quick;
        soon.break_after = 2;
        soon.probe_ms = 60000;
        struct scene *scene = scene_of(&items[0], 4, 1);
        items[1].name = "m2";
        scene->spec.policy = &soon;
        for (size_t i = 0; i < 4; i++)
            scene->asks[i].others = &both;
        scene_run(scene);
        for (size_t i = 0; i < 4; i++)
            assert_true(scene->asks[i].moved && scene->asks[i].err.code != ERR_NONE);
        assert_int_equal(scene->totals.requests, row == 1 ? 2 : 1);
        assert_int_equal(scene->endpoints[0].state, states[row]);
        scene_free(scene);
        scene = scene_of(&items[0], 1, 1); /* itself, and a box that answers nobody else's */
        scene->spec.policy = &soon;
        scene->asks[0].others = &alone;
        scene->act_after_ms = 100;
        scene_run(scene);
        assert_int_equal(scene->asks[0].err.code, ERR_CANCELLED);
        assert_false(scene->asks[0].moved);
        scene_free(scene);
        provider_stop(&one);
        provider_stop(&two);
        assert_int_equal(file_remove_tree(folder, &err), 0);
    }
}

/* The breaker of a provider that is down opens after three failures; it is probed by one request at
 * a time, and costs nobody a try: five asks of four tries each outlive twelve failures. */
static void test_breaker(void **state)
{
    (void)state;
    static const char *const faults[] = {"status code=503 times=12", NULL};
    struct provider provider = provider_start(faults, "good");
    const struct model model = model_at(provider.url, "good");
    struct scene *scene = scene_of(&model, 5, 1);
    scene_run(scene);
    all_answered(scene);
    assert_int_equal(scene->totals.requests, 12 + 5);
    int failures = 0;
    for (size_t i = 0; i < 5; i++)
        failures += scene->asks[i].failures;
    assert_int_equal(failures, policy.break_after - 1);
    assert_int_equal(events_of(&scene->events, "provider.breaker_open"), 1);
    assert_int_equal(events_of(&scene->events, "provider.probe"), 9);
    assert_int_equal(events_of(&scene->events, "provider.ready"), 1);
    scene_free(scene);
    provider_stop(&provider);
}

/* The same with several in flight when the breaker opens: theirs are no probes, and use up no
 * tries. */
static void test_breaker_in_flight(void **state)
{
    (void)state;
    static const char *const faults[] = {"status code=500 delay=10 times=20", NULL};
    struct provider provider = provider_start(faults, "good");
    const struct model model = model_at(provider.url, "good");
    struct scene *scene = scene_of(&model, 12, 8);
    scene_run(scene);
    all_answered(scene);
    assert_int_equal(scene->totals.requests, 20 + 12);
    assert_int_equal(events_of(&scene->events, "provider.breaker_open"), 1);
    scene_free(scene);
    provider_stop(&provider);
}

static void cancel_prober(struct scene *scene, int times)
{
    struct endpoint_view view;
    size_t cancelled = 0;
    (void)times;
    if (completions_endpoints(scene->completions, &view, 1) == 0 ||
        view.state != ENDPOINT_BREAKER_OPEN)
        return;
    for (size_t i = 0; i < scene->count; i++)
        cancelled += scene->asks[i].task.cancel_requested;
    for (size_t i = 0; cancelled == 0 && i < scene->count; i++)
        if (scene->asks[i].http != NULL)
            task_cancel(&scene->asks[i].task);
}

/* The one that probes may be cancelled: another takes its place. */
static void test_prober_cancelled(void **state)
{
    (void)state;
    static const char *const faults[] = {"status code=503 times=3", "stall after=0", NULL};
    struct provider provider = provider_start(faults, "good");
    const struct model model = model_at(provider.url, "good");
    struct scene *scene = scene_of(&model, 3, 1);
    int answered = 0, cancelled = 0;
    scene->spec.first_byte_ms = 300; /* where it was cancelled before the provider had read it */
    scene->act_after_ms = 5;
    scene->act = cancel_prober;
    scene_run(scene);
    for (size_t i = 0; i < 3; i++) {
        answered += scene->asks[i].err.code == ERR_NONE;
        cancelled += scene->asks[i].err.code == ERR_CANCELLED;
    }
    assert_int_equal(answered, 2);
    assert_int_equal(cancelled, 1);
    assert_true(scene->totals.requests >= 3 + 1 + 2);
    scene_free(scene);
    provider_stop(&provider);
}

/* The key stops at the first answer: the others learn of it and none is sent after. */
static void test_blocked_for_all(void **state)
{
    (void)state;
    static const char *const faults[] = {"status code=402 times=0", NULL};
    struct provider provider = provider_start(faults, "good");
    const struct model model = model_at(provider.url, "good");
    struct scene *scene = scene_of(&model, 6, 1);
    scene_run(scene);
    assert_int_equal(scene->totals.requests, 1);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(scene->asks[i].err.code, ERR_PROTOCOL);
    assert_int_equal(scene->endpoints[0].state, ENDPOINT_BLOCKED);
    assert_int_equal(events_of(&scene->events, "provider.blocked"), 1);
    scene_free(scene);
    provider_stop(&provider);
}

/* Who is at the other end is not who was asked for: nobody asks again. */
static void test_tls(void **state)
{
    (void)state;
    struct provider provider = stranger_start();
    const struct model model = model_at(provider.url, "good");
    struct scene *scene = scene_of(&model, 4, 1);
    scene_run(scene);
    assert_int_equal(scene->totals.requests, 1);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(scene->asks[i].err.code, ERR_NETWORK);
        assert_int_equal(scene->asks[i].fault, FAULT_FATAL);
    }
    assert_int_equal(scene->endpoints[0].state, ENDPOINT_BLOCKED);
    scene_free(scene);
    provider_stop(&provider);
}

/* A key that is refused says nothing of another one; no event and no reason has a key in it. */
static void test_other_key_goes_on(void **state)
{
    (void)state;
    struct provider provider = provider_start(NULL, "good");
    const struct model bad = model_at(provider.url, "sk-very-secret"),
                       good = model_at(provider.url, "good");
    struct scene *scene = scene_of(&good, 6, 1);
    for (size_t i = 0; i < 6; i += 2)
        scene->asks[i].model = &bad;
    scene_run(scene);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(scene->asks[i].err.code, i % 2 == 0 ? ERR_PROTOCOL : ERR_NONE);
    assert_int_equal(scene->totals.requests, 3 + 1);
    assert_int_equal(scene->endpoint_count, 2);
    assert_int_equal(scene->endpoints[0].state, ENDPOINT_BLOCKED);
    assert_int_equal(scene->endpoints[1].state, ENDPOINT_READY);
    assert_int_not_equal(scene->blocked.code, ERR_NONE); /* that of the first ask's model */
    for (size_t i = 0; i < scene->events.count; i++)
        assert_null(strstr(scene->events.items[i].message, "secret"));
    scene_free(scene);
    provider_stop(&provider);
}

/* A model that is not there stops that model only. */
static void test_other_model_goes_on(void **state)
{
    (void)state;
    static const char *const faults[] = {"status code=404", NULL};
    struct provider provider = provider_start(faults, "good");
    const struct model gone = model_at(provider.url, "good");
    struct model there = gone;
    there.name = there.wire_name = "n";
    struct scene *scene = scene_of(&there, 4, 1);
    scene->asks[0].model = scene->asks[1].model = &gone;
    scene_run(scene);
    bool first = scene->asks[0].err.code != ERR_NONE; /* which is sent first is nobody's promise */
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(scene->asks[i].err.code, (i < 2) == first ? ERR_PROTOCOL : ERR_NONE);
    assert_int_equal(scene->totals.requests, 3);
    assert_int_equal(scene->blocked.code != ERR_NONE, first); /* of the first ask's model */
    assert_int_equal(scene->endpoint_count, 2); /* the endpoint, and the model that it has not */
    assert_int_equal(scene->endpoints[0].state, ENDPOINT_READY);
    assert_int_equal(scene->endpoints[1].state, ENDPOINT_BLOCKED);
    scene_free(scene);
    provider_stop(&provider);
}

static void go_on(struct scene *scene, int times)
{
    if (times < 5)
        assert_int_equal(completions_totals(scene->completions).requests, 0);
    else
        completions_hold(scene->completions, false);
}

/* While a person pauses it no request is sent. */
static void test_hold(void **state)
{
    (void)state;
    struct provider provider = provider_start(NULL, "good");
    const struct model model = model_at(provider.url, "good");
    struct scene *scene = scene_of(&model, 4, 2);
    scene->held = true;
    scene->act_after_ms = 10;
    scene->act = go_on;
    scene_run(scene);
    all_answered(scene);
    assert_int_equal(scene->totals.requests, 4);
    scene_free(scene);
    provider_stop(&provider);
}

static const uint64_t second_ns = 1000000000;
static uint64_t told_ns;

static uint64_t tell(void *context)
{
    (void)context;
    return told_ns;
}

/* An endpoint by itself, at an injected second 1. */
static struct endpoint *endpoint_alone(void)
{
    static const struct model model = {.provider = "openai", .name = "m", .codec = &codec_openai};
    static struct random random;
    random_init(&random, 1);
    told_ns = second_ns;
    clock_inject(tell, NULL);
    return endpoint_new(&model, &policy, &random, 4);
}

static void open_breaker(struct endpoint *endpoint)
{
    struct err empty;
    err_set(&empty, ERR_PROTOCOL, "the answer is empty");
    for (int i = 0; i < policy.break_after; i++)
        endpoint_failed(endpoint, NULL, 10000, &empty);
    assert_true(endpoint->breaker_open);
}

static int real_clock(void **state)
{
    (void)state;
    clock_inject(NULL, NULL);
    return 0;
}

/* What a failure cost is what a probe may: who could ask another leaves it alone for sixty times as
 * long, and has nothing to look for before that, though a probe is due. */
static void test_avoided(void **state)
{
    (void)state;
    struct endpoint *endpoint = endpoint_alone();
    open_breaker(endpoint);
    told_ns += second_ns;
    assert_true(endpoint_retry_ns(endpoint) < told_ns);
    assert_false(endpoint_is_unavailable(endpoint, NULL));
    assert_true(endpoint_is_avoided(endpoint, NULL));
    assert_true(endpoint_avoided_until_ns(endpoint) > told_ns);
    told_ns = endpoint_avoided_until_ns(endpoint);
    assert_false(endpoint_is_avoided(endpoint, NULL));
    assert_true(told_ns == 601 * second_ns);
    endpoint_free(endpoint);
}

/* Closed: all. Open: nobody. Half-open: one, until it is known what became of that one. */
static void test_one_probe(void **state)
{
    (void)state;
    static const struct ask one, other;
    struct err down;
    err_set(&down, ERR_PROTOCOL, "down");
    struct endpoint *endpoint = endpoint_alone();
    assert_true(endpoint_admits(endpoint, &one) && endpoint_admits(endpoint, &other));
    open_breaker(endpoint);
    assert_false(endpoint_admits(endpoint, &one));
    told_ns += second_ns;
    assert_true(endpoint_admits(endpoint, &one));
    assert_false(endpoint_admits(endpoint, &other));
    assert_true(endpoint_admits(endpoint, &one));
    assert_true(endpoint_is_unavailable(endpoint, &other));
    assert_int_equal(endpoint->slots.capacity, 0);
    endpoint_leave(endpoint, &other); /* no probe: changes nothing */
    assert_false(endpoint_admits(endpoint, &other));
    endpoint_leave(endpoint, &one);
    assert_true(endpoint_admits(endpoint, &other));
    endpoint_failed(endpoint, &one, 1, &down); /* sent before the breaker opened: says nothing */
    assert_int_equal(endpoint->probes, 0);
    endpoint_failed(endpoint, &other, 1, &down);
    assert_int_equal(endpoint->probes, 1);
    assert_false(endpoint_admits(endpoint, &one));
    endpoint_succeeded(endpoint);
    assert_true(endpoint_admits(endpoint, &one) && endpoint_admits(endpoint, &other));
    assert_int_equal(endpoint->slots.capacity, 4);
    endpoint_free(endpoint);
}

/* A later 429 that asks for less takes nothing away from what was asked for before. */
static void test_shorter_limit(void **state)
{
    (void)state;
    struct err reason;
    err_set(&reason, ERR_PROTOCOL, "429");
    struct endpoint *endpoint = endpoint_alone();
    endpoint_limit(endpoint, 20000, false, &reason);
    endpoint_limit(endpoint, 1000, false, &reason);
    assert_true(endpoint_retry_ns(endpoint) == 21 * second_ns);
    assert_int_equal(endpoint->state, ENDPOINT_LIMITED);
    endpoint_limit(endpoint, 300000, true, &reason);
    endpoint_limit(endpoint, 1000, false, &reason);
    assert_true(endpoint_retry_ns(endpoint) == 301 * second_ns);
    assert_int_equal(endpoint->state, ENDPOINT_PARKED);
    told_ns = 301 * second_ns - 1;
    assert_false(endpoint_admits(endpoint, NULL));
    told_ns++;
    assert_true(endpoint_admits(endpoint, NULL));
    endpoint_free(endpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {ENGINE_TEST(test_limited),
                                       ENGINE_TEST(test_parked),
                                       ENGINE_TEST(test_parked_for_a_day),
                                       ENGINE_TEST(test_moved),
                                       cmocka_unit_test_teardown(test_avoided, real_clock),
                                       cmocka_unit_test_teardown(test_one_probe, real_clock),
                                       cmocka_unit_test_teardown(test_shorter_limit, real_clock),
                                       ENGINE_TEST(test_breaker),
                                       ENGINE_TEST(test_breaker_in_flight),
                                       ENGINE_TEST(test_prober_cancelled),
                                       ENGINE_TEST(test_blocked_for_all),
                                       ENGINE_TEST(test_tls),
                                       ENGINE_TEST(test_other_key_goes_on),
                                       ENGINE_TEST(test_other_model_goes_on),
                                       ENGINE_TEST(test_hold)};
    setenv("no_proxy", "*", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
