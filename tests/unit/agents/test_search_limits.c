/* What ends a search early: a target, a share of the floor, no win for some rounds. */
#include "agents/search/private.h"

#include "check.h"

#include "base/clock.h"
#include "base/mem.h"
#include "eval/lane/private.h"

/* A search that has taken one round with one kernel. */
struct taken {
    struct search *search;
    struct attempt *attempt;
};

static uint64_t stands_still(void *context)
{
    (void)context;
    return UINT64_C(1000000000000000); /* longer ago than any budget began */
}

static int clock_stops(void **state)
{
    (void)state;
    clock_inject(stands_still, NULL);
    return 0;
}

static int clock_goes_on(void **state)
{
    (void)state;
    clock_inject(NULL, NULL);
    return 0;
}

static bool under_load; /* when the ceilings were measured */

static struct taken take(struct search_options options, double floor_ns, double time_ns,
                         double speedup_low)
{
    struct taken taken = {.search = mem_alloc(sizeof *taken.search),
                          .attempt = mem_alloc(sizeof *taken.attempt)};
    struct search *search = taken.search;
    search->arena = arena_new();
    search->options = options;
    search->floor_ns = floor_ns;
    search->floor_under_load = under_load;
    strcpy(search->id, "r1");
    list_init(&search->kept);
    taken.attempt->search = search;
    taken.attempt->record.duplicate_of = "";
    taken.attempt->record.time_ns = time_ns;
    taken.attempt->record.speedup_low = speedup_low;
    list_append(&search->kept, &taken.attempt->link);
    search_round_taken(search, 1);
    return taken;
}

static void drop(struct taken *taken)
{
    arena_free(taken->search->arena);
    mem_free(taken->search);
    mem_free(taken->attempt);
}

static void expect(struct search_options options, double floor_ns, double time_ns,
                   const char *words)
{
    struct taken taken = take(options, floor_ns, time_ns, 1.5);
    if (words == NULL)
        assert_null(taken.search->limits.reached);
    else if (taken.search->limits.reached == NULL ||
             strstr(taken.search->limits.reached, words) == NULL)
        fail_msg("expected '%s', got '%s'", words,
                 taken.search->limits.reached ? taken.search->limits.reached : "nothing");
    drop(&taken);
}

static void test_floor(void **state)
{
    const struct search_options share = {.floor_share = 0.95}, none = {.floor_share = 0};
    (void)state;
    expect(share, 960, 1000, "floor reached: 96 %");
    expect(share, 940, 1000, NULL);
    expect(share, 1090, 1000, "floor reached: 109 %");
    expect(share, 1340, 1000, NULL); /* so far below it is the floor that is wrong */
    expect(share, 0, 1000, NULL);    /* a problem that says neither bytes nor flops */
    expect(none, 1000, 1000, NULL);
    under_load = true; /* a ceiling that is too low ends no search */
    expect(share, 1000, 1000, NULL);
    under_load = false;
}

static void test_target(void **state)
{
    (void)state;
    expect((struct search_options){.target = 1.4}, 0, 1000, "target reached: at least 1.4x");
    expect((struct search_options){.target = 1.6}, 0, 1000, NULL);
}

static void test_patience(void **state)
{
    struct taken taken = take((struct search_options){.patience = 2}, 0, 1000, 1.5);
    (void)state;
    search_round_taken(taken.search, 2);
    assert_null(taken.search->limits.reached);
    taken.attempt->record.speedup_low = 1.6; /* a win: it counts from here */
    search_round_taken(taken.search, 3);
    search_round_taken(taken.search, 4);
    assert_null(taken.search->limits.reached);
    search_round_taken(taken.search, 5);
    assert_non_null(strstr(taken.search->limits.reached, "nothing better for 2 rounds"));
    drop(&taken);
}

/* Answers that only repeat what is known change who is asked and from where, and end the run;
 * rounds that nobody answered do neither. */
static void test_progress(void **state)
{
    struct taken taken = take((struct search_options){.patience = 0}, 0, 1000, 1.5);
    struct search *search = taken.search;
    static const struct model model = {.temperature = 0.5}, usual = {.temperature = -1};
    int64_t round = 2;
    (void)state;
    for (; round < 40; round++) /* an outage */
        search_round_taken(search, round);
    assert_int_equal(search_staleness(search), 0);
    search->limits.answered_round = true;
    for (int i = 1; i < 20; i++) {
        search_round_taken(search, round++);
        assert_null(search->limits.reached);
        assert_int_equal(search_staleness(search), i < 4 ? 0 : i - 3);
    }
    assert_float_equal(search_temperature(search, &model), 1.2, 1e-9);
    assert_float_equal(search_temperature(search, &usual), -1, 0);
    search->limits.new_kernel = true;
    search_round_taken(search, round++);
    search->limits.new_kernel = false;
    assert_int_equal(search_staleness(search), 0);
    for (int i = 0; i < 20; i++)
        search_round_taken(search, round++);
    assert_non_null(strstr(search->limits.reached, "no progress: 20 rounds without a new kernel"));
    drop(&taken);
}

/* Ten minutes, answers of 75 s, evaluations of two: what a night's end is kept back for goes by the
 * two, not by the 75. */
static void test_time(void **state)
{
    (void)state;
    static const struct {
        double elapsed_s, busy_s;
        int64_t measured;
        bool goes_on;
    } rows[] = {
        {94, 6, 3, true},      /* thinking is no evaluation */
        {4300, 60, 30, true},  /* an outage of 70 minutes is none */
        {28770, 60, 30, true}, /* 30 s are left, 12 evaluations take 24 */
        {28780, 60, 30, false}, {28770, 240, 30, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct search *search = mem_alloc(sizeof *search);
        search->arena = arena_new();
        search->options = (struct search_options){.budget_ms = 28800000, .final = true};
        search->started_ns = clock_now_ns();
        search->earlier_ms = rows[i].elapsed_s * 1e3;
        struct lane lane = {.busy_ns = (uint64_t)(rows[i].busy_s * 1e9)};
        search->lanes.open = 1;
        search->lanes.place[0].lane = &lane;
        search->time.first_busy_ms = rows[i].busy_s * 1e3 / (double)rows[i].measured;
        search->time.measured = rows[i].measured;
        if (search_may_propose(search) != rows[i].goes_on)
            fail_msg("row %zu", i);
        if (!rows[i].goes_on)
            assert_string_equal(search_stop_reason(search), "budget: a time of 8:00:00");
        arena_free(search->arena);
        mem_free(search);
    }
}

/* What is measured when the time for searching is up may end only where the champion's last
 * measurement still has its time behind it: 11 s were left of 30, and 3.6 of them went to a kernel
 * beside which that one, of about 9 s, was left out. */
static void test_in_flight(void **state)
{
    (void)state;
    static const struct {
        double left_s;
        bool final, affords;
    } rows[] = {{11, true, false}, {13.1, true, true}, {1, false, true}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct search *search = mem_alloc(sizeof *search);
        search->options = (struct search_options){.budget_ms = 30000, .final = rows[i].final};
        search->started_ns = clock_now_ns();
        search->earlier_ms = 30000 - rows[i].left_s * 1e3;
        search->time.final_ms = 9000;
        search->time.full_ms = 3600;
        assert_int_equal(search_affords_in_flight(search), rows[i].affords);
        mem_free(search);
    }
}

static struct search *timed(int64_t budget_ms, double left_ms)
{
    struct search *search = mem_alloc(sizeof *search);
    search->arena = arena_new();
    search->options = (struct search_options){.budget_ms = budget_ms, .final = true};
    search->started_ns = clock_now_ns() - (uint64_t)(((double)budget_ms - left_ms) * 1e6);
    return search;
}

static void drop_timed(struct search *search)
{
    arena_free(search->arena);
    mem_free(search);
}

/* Others time on the same GPU: what waiting has cost so far is kept back for the last measurement,
 * too, up to a quarter of the budget; without any it is as it was. */
static void test_waits(void **state)
{
    (void)state;
    static const struct {
        double left_s, waits;
        bool another, run_off, in_flight;
    } rows[] = {
        {14, 0, true, true, true},      {14, 0.2, true, true, true},
        {14, 0.6, false, false, false}, {16.3, 0.6, true, false, true},
        {18, 0.6, true, true, true},    {23, 3, false, false, false},
        {26, 3, false, false, true},    {26.8, 3, false, true, true},
        {28, 3, true, true, true},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct search *search = timed(60000, rows[i].left_s * 1e3);
        search->time.final_ms = 8000;
        search->time.full_ms = 1000;
        search_learn_measured(search, 1000, rows[i].waits);
        search->time.measured = 3;
        if (search_affords_another(search, 2000) != rows[i].another ||
            search_affords_run_off(search) != rows[i].run_off ||
            search_affords_in_flight(search) != rows[i].in_flight)
            fail_msg("row %zu: another %d, run-off %d, in flight %d", i,
                     search_affords_another(search, 2000), search_affords_run_off(search),
                     search_affords_in_flight(search));
        drop_timed(search);
    }
}

/* A last measurement waits for its turn beyond the time: by a sixth of it, or 10 s. */
static void test_grace(void **state)
{
    (void)state;
    static const struct {
        int64_t budget_ms;
        double late_s;
        bool over;
    } rows[] = {{60000, -1, false}, {60000, 1, false}, {60000, 9, false},  {60000, 10.5, true},
                {6000, 0.5, false}, {6000, 1.5, true}, {600000, 9, false}, {600000, 11, true}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct search *search = timed(rows[i].budget_ms, -rows[i].late_s * 1e3);
        struct attempt finalist = {.record.id = "r1-c1"};
        struct final final = {.finalist = &finalist, .request = {.active = true, .waits = true}};
        search->final = &final;
        assert_int_equal(search_time_is_long_up(search), rows[i].over);
        if (!rows[i].over)
            search_final_watch(search); /* has no lane to cancel on */
        assert_false(final.out_of_time);
        drop_timed(search);
    }
}

/* A last measurement that takes longer than its estimate ends a twentieth late, or 2 s; a run-off's
 * match when that one is due. One that had waited for another twagent comes to its end. */
static void test_overrun(void **state)
{
    (void)state;
    static const struct {
        int64_t budget_ms;
        double left_s;
        bool finalist, waited, ends;
    } rows[] = {{60000, -2.9, true, false, false}, {60000, -3.1, true, false, true},
                {60000, -9, true, true, false},    {10000, -1.9, true, false, false},
                {10000, -2.1, true, false, true},  {60000, 8.1, false, false, false}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct search *search = timed(rows[i].budget_ms, rows[i].left_s * 1e3);
        struct attempt finalist = {.record.id = "r1-c1"};
        struct final final = {.finalist = rows[i].finalist ? &finalist : NULL,
                              .waited = rows[i].waited,
                              .request = {.active = true}};
        struct lane lane = {0};
        list_init(&lane.submitted);
        search->lanes.place[0].lane = &lane;
        search->time.final_ms = 8000;
        search->final = &final;
        search_final_watch(search);
        if (final.out_of_time != rows[i].ends)
            fail_msg("row %zu: %d", i, final.out_of_time);
        drop_timed(search);
    }
    struct search *search = timed(60000, 7900);
    search->time.final_ms = 8000;
    assert_true(search_final_is_due(search));
    drop_timed(search);
}

/* What the time was not enough for is said, whichever budget ended the search before. */
static void test_short_of_time(void **state)
{
    struct search *search = timed(60000, 1000);
    (void)state;
    search->options.budget_evaluations = 3;
    search_cap_evaluations(search);
    search_short_of_time(search, "too little for it");
    assert_string_equal(search_stop_reason(search), "budget: a time of 1:00, too little for it");
    drop_timed(search);
}

/* A kernel is ranked by its time. Its speed-up was taken against the baseline of another moment;
 * one that was dropped after a few samples is not ranked at all. */
static void test_ranking(void **state)
{
    static const struct {
        double time_ns, time_high, speedup_low;
        bool dropped;
    } rows[] = {{126.8e3, 130e3, 70, false},  /* a slow moment of the baseline's */
                {104.9e3, 109e3, 2.2, false}, /* the best */
                {15.7e6, 15.8e6, 300, true},  /* dropped, in another such moment */
                {90e3, 200e3, 3, false},      /* a lucky median */
                {120e3, 0, 2, false}};        /* of a record that is older */
    static const int64_t order[] = {2, 5, 1, 4};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    struct search *search = mem_alloc(sizeof *search);
    struct attempt *all = mem_array(ROWS, sizeof *all);
    size_t count;
    (void)state;
    search->arena = arena_new();
    search->record.baseline = "naive";
    list_init(&search->kept);
    for (size_t i = 0; i < ROWS; i++) {
        all[i].search = search;
        all[i].answered = true;
        all[i].task = (struct task){.type = &attempt_type, .state = 6}; /* kept */
        all[i].record = (struct candidate_record){.id = "r1-c1",
                                                  .duplicate_of = "",
                                                  .verdict = "kernel",
                                                  .number = (int64_t)i + 1,
                                                  .time_ns = rows[i].time_ns,
                                                  .time_high = rows[i].time_high,
                                                  .speedup_low = rows[i].speedup_low,
                                                  .dropped = rows[i].dropped};
        search_count(search, &all[i]);
        list_append(&search->kept, &all[i].link);
    }
    assert_int_equal(search->best->record.number, 2);
    assert_false(search->lanes.beaten);
    search->floor_ns = 1.2 * 104.9e3;
    search_count(search, &all[1]);
    assert_true(search->lanes.beaten);
    struct contender *ranked = search_contenders(search, -1, &count);
    assert_int_equal(count, sizeof order / sizeof order[0]);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ranked[i].number, order[i]);
    mem_free(ranked);
    mem_free(all);
    arena_free(search->arena);
    mem_free(search);
}

static bool puts_ceilings(const char *ceilings, bool beaten)
{
    struct search *search = mem_alloc(sizeof *search);
    struct arena *arena = arena_new();
    struct store_batch *batch = store_batch_new();
    struct value *answer;
    assert_int_equal(value_parse_json(arena, "answer", ceilings, strlen(ceilings), &answer, NULL),
                     0);
    search->lanes.place[0].open.answer = answer;
    search->options.backend = "cpu";
    if (beaten) {
        search_ceilings_beaten(search);
        search_drop_ceilings(search, batch);
    } else {
        search_put_ceilings(search, batch);
    }
    bool put = !store_batch_empty(batch);
    store_batch_free(batch);
    arena_free(arena);
    mem_free(search);
    return put;
}

/* What was measured under load is not the machine's; what a kernel has beaten is taken away. */
static void test_ceilings(void **state)
{
    (void)state;
    assert_true(puts_ceilings("{\"ceilings\":{\"copy_bytes_per_s\":2e10}}", false));
    assert_false(
        puts_ceilings("{\"ceilings\":{\"copy_bytes_per_s\":2e9,\"under_load\":true}}", false));
    assert_true(puts_ceilings("{\"ceilings\":{}}", true)); /* a removal */
    assert_false(puts_ceilings("{\"ceilings\":{}}", false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floor),    cmocka_unit_test(test_target),
        cmocka_unit_test(test_ceilings), cmocka_unit_test(test_patience),
        cmocka_unit_test(test_progress), cmocka_unit_test(test_ranking),
        cmocka_unit_test(test_time),     cmocka_unit_test(test_in_flight),
        cmocka_unit_test(test_waits),    cmocka_unit_test(test_grace),
        cmocka_unit_test(test_overrun),  cmocka_unit_test(test_short_of_time),
    };
    return cmocka_run_group_tests(tests, clock_stops, clock_goes_on);
}
