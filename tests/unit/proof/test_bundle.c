/* The format of a bundle under hostile hands, and what a figure of then is held against. */
#include "base/hash.h"
#include "base/random.h"
#include "proof/bundle.h"
#include "proof/claim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char record[] =
    "{\"verdict\": \"kernel\", \"stage\": \"time\", \"win\": true, \"finding\": \"faster\", "
    "\"noise\": \"\", \"reason\": \"\", \"details\": \"\", \"ours\": false, \"dropped\": false, "
    "\"quarantined\": false, \"time_ns\": {\"median\": 1000, \"low\": 990, \"high\": 1010.5, "
    "\"samples\": 20}, \"hot_ns\": null, \"baseline_ns\": {\"median\": 2000, \"low\": 1990, "
    "\"high\": 2010, \"samples\": 20}, \"speedup\": {\"median\": 2, \"low\": 1.9, \"high\": 2.1, "
    "\"samples\": 20}, \"baseline\": \"naive\", \"spread\": 0.01, \"timed_samples\": 20, "
    "\"dropped_samples\": 0, \"identity\": \"07e083a167817bfb4a31b8b5507fc767\", \"tune\": {}, "
    "\"metrics\": {}, \"device\": {\"cpu\": \"A\\u001b[2J\", \"cores\": 2}, \"versions\": "
    "{\"gcc\": \"12\"}, \"baselines\": {}, \"checks\": {\"passed\": 40, \"total\": 40}, "
    "\"stage_ms\": {\"parse\": 0, \"compile\": 1, \"check\": 2, \"time\": 3, \"sanitize\": 0, "
    "\"profile\": 0}}";

static struct value *parse(struct arena *arena, const char *text)
{
    struct value *root;
    struct err err;
    assert_int_equal(value_parse_json(arena, "test", text, strlen(text), &root, &err), 0);
    return root;
}

static struct bundle whole(struct arena *arena)
{
    return (struct bundle){.id = "r1-c1",
                           .name = "rows.c",
                           .source = "void kernel(void)\n{ /* \"\xc3\xa9\" */ }\n",
                           .tune = parse(arena, "{\"BM\": 64, \"BN\": -1}"),
                           .problem = "axpy",
                           .entry = "spec.yaml",
                           .size = "M=8,N=9",
                           .file_count = 2,
                           .files = {{"spec.yaml", "name: axpy\n"}, {"baselines/naive.c", ""}},
                           .evidence = parse(arena, record),
                           .twagent = "0.1.0",
                           .written_ms = 1790000000000};
}

/* NULL: it was taken. */
static const char *refused(struct arena *arena, const char *text, size_t length)
{
    struct bundle *bundle = ARENA_NEW(arena, struct bundle);
    struct err err = {0};
    if (bundle_decode(arena, text, length, bundle, &err) == 0)
        return NULL;
    assert_int_not_equal(err.code, ERR_NONE);
    return arena_strdup(arena, err.message);
}

static char *encoded(struct arena *arena, const struct bundle *bundle)
{
    BUF_LOCAL(text, BUNDLE_MOST);
    struct err err;
    assert_int_equal(bundle_encode(bundle, &text, &err), 0);
    return buf_keep(&text, arena);
}

static void reads_what_it_wrote(void **state)
{
    (void)state;
    ARENA_LOCAL(arena);
    struct bundle bundle = whole(arena), again;
    struct err err;
    char *text = encoded(arena, &bundle);
    assert_int_equal(bundle_decode(arena, text, strlen(text), &again, &err), 0);
    assert_string_equal(again.source, bundle.source);
    assert_string_equal(again.size, "M=8,N=9");
    assert_int_equal(again.file_count, 2);
    assert_string_equal(again.files[1].name, "baselines/naive.c");
    assert_int_equal(value_int(again.tune, "BN", 0), -1);
    assert_true(again.claim.speedup.high == 2.1 && again.claim.time_ns.high == 1010.5);
    assert_string_equal(encoded(arena, &again), text);
}

/* As somebody would who hashes what he forged: the hashes are the forgery's own. */
static void refuses_what_cannot_be(void **state)
{
    static const struct {
        const char *from, *to, *why;
    } forgeries[] = {
        {"\"low\": 1.9", "\"low\": 2.05", "no interval"},
        {"\"low\": 1.9", "\"low\": -1", "no interval"},
        {"\"low\": 1.9", "\"low\": null", "no interval"},
        {"\"spread\": 0.01", "\"spread\": 0.4", "do not show"},
        {"\"spread\": 0.01", "\"spread\": -1", "no interval"},
        {"\"low\": 990", "\"low\": 0", "its time"},
        {"\"passed\": 40", "\"passed\": 39", "not every check"},
        {"\"passed\": 40, \"total\": 40", "\"passed\": 0, \"total\": 0", "not every check"},
        {"\"verdict\": \"kernel\"", "\"verdict\": \"rejected\"", "no kernel"},
        {"\"verdict\": \"kernel\"", "\"verdict\": 7", "verdict"},
        {"\"checks\"", "\"cheques\"", "checks"},
        {"\"naive\"", "\"a b\"", "no name"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof forgeries / sizeof forgeries[0]; i++) {
        ARENA_LOCAL(arena);
        struct bundle bundle = whole(arena);
        const char *at = strstr(record, forgeries[i].from);
        assert_non_null(at);
        bundle.evidence =
            parse(arena, arena_printf(arena, "%.*s%s%s", (int)(at - record), record,
                                      forgeries[i].to, at + strlen(forgeries[i].from)));
        char *text = encoded(arena, &bundle);
        const char *why = refused(arena, text, strlen(text));
        if (why == NULL || strstr(why, forgeries[i].why) == NULL)
            fail_msg("%s: %s", forgeries[i].to, why != NULL ? why : "taken");
    }
}

static void takes_no_path(void **state)
{
    static const char *const names[] = {"../x.py",  "/etc/passwd", "a/../b", "a//b",     "a/",
                                        ".bashrc",  "a/.b",        "",       "a/b/c/d",  "a b",
                                        "a\x1b[2J", "a\\b",        "-rf",    "spec\n.c", "~"};
    static const char *const fine[] = {"spec.yaml", "a/b-1/c_2.c", "0.py"};
    (void)state;
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
        assert_true(bundle_name_fits(fine[i]));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ARENA_LOCAL(arena);
        struct bundle bundle = whole(arena), sized = bundle, named = bundle, entered = bundle;
        assert_false(bundle_name_fits(names[i]));
        bundle.files[1].name = named.name = entered.entry = names[i];
        sized.size = i == 6 ? "M=8/../x" : names[i]; /* "" is a size */
        const struct bundle *const all[] = {&bundle, &named, &entered, &sized};
        for (size_t k = 0; k < 4; k++) {
            char *text = encoded(arena, all[k]);
            bool fits = k == 3 && (*names[i] == '\0' || strcmp(names[i], "-rf") == 0 ||
                                   strcmp(names[i], ".bashrc") == 0);
            assert_true((refused(arena, text, strlen(text)) == NULL) == fits);
        }
    }
    ARENA_LOCAL(arena);
    struct bundle below = whole(arena); /* files of a problem may lie in folders, a kernel not */
    below.name = "a/kernel.c";
    char *text = encoded(arena, &below);
    assert_non_null(refused(arena, text, strlen(text)));
}

/* Cut anywhere, any byte another one: told, or nothing of what counts has changed. */
static void is_not_damaged_unseen(void **state)
{
    (void)state;
    ARENA_LOCAL(outer);
    struct bundle bundle = whole(outer);
    char *text = encoded(outer, &bundle);
    size_t length = strlen(text);
    struct random random;
    random_init(&random, 15);
    for (size_t cut = 0; cut + 1 < length; cut += 7) {
        ARENA_LOCAL(arena);
        assert_non_null(refused(arena, text, cut));
    }
    for (int i = 0; i < 3000; i++) {
        ARENA_LOCAL(arena);
        char *other = arena_strndup(arena, text, length);
        other[random_below(&random, length)] = (char)random_below(&random, 256);
        struct bundle *read = ARENA_NEW(arena, struct bundle);
        struct err err;
        if (bundle_decode(arena, other, length, read, &err) == 0)
            assert_string_equal(encoded(arena, read), text);
    }
}

static void is_bounded(void **state)
{
    (void)state;
    ARENA_LOCAL(arena);
    size_t length = BUNDLE_MOST + 1;
    char *text = arena_alloc(arena, length);
    memset(text, '[', length);
    assert_non_null(refused(arena, text, length));
    assert_non_null(refused(arena, text, 1 << 20));
    assert_non_null(refused(arena, "{}", 2));
    assert_non_null(refused(arena, "null", 4));
    static const char later[] = "{\"format\": \"twagent bundle\", \"version\": 2}";
    assert_non_null(strstr(refused(arena, later, strlen(later)), "version 2"));
}

/* ---- figures ---- */

static struct evaluation figure(double median, double low, double high, enum finding finding)
{
    struct evaluation evaluation = evaluation_empty();
    evaluation.verdict = VERDICT_KERNEL;
    evaluation.speedup = (struct interval){median, low, high, 20, 0};
    evaluation.finding = finding;
    evaluation.baseline = "naive";
    evaluation.device = "{\"cpu\": \"A\", \"cores\": 2}";
    evaluation.versions = "{\"gcc\": \"12\"}";
    return evaluation;
}

static void compares_figures(void **state)
{
    static const struct {
        double median, low, high;
        enum finding finding;
        enum claim_answer answer;
        const char *why;
    } rows[] = {
        {2.05, 2.0, 2.15, FINDING_FASTER, CLAIM_HOLDS, "overlap"},
        {2.1, 2.1, 2.2, FINDING_FASTER, CLAIM_HOLDS, "overlap"}, /* they touch */
        {1.85, 1.8, 1.95, FINDING_FASTER, CLAIM_HOLDS, "overlap"},
        {1.7, 1.6, 1.89, FINDING_FASTER, CLAIM_DIFFERS, "smaller"},
        {2.3, 2.2, 2.4, FINDING_FASTER, CLAIM_DIFFERS, "larger"},
        {0.7, 0.6, 0.8, FINDING_SLOWER, CLAIM_DIFFERS, "slower"},
        {2.0, 1.9, 2.1, FINDING_NOISY, CLAIM_UNKNOWN, "noisy"},
        {2.0, 1.0, 3.0, FINDING_FASTER, CLAIM_UNKNOWN, "noisy"},
        {1.9, 1.5, 2.1, FINDING_SAME, CLAIM_UNKNOWN, "not shown"},
    };
    (void)state;
    ARENA_LOCAL(arena);
    const struct evaluation then = figure(2, 1.9, 2.1, FINDING_FASTER);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct evaluation now = figure(rows[i].median, rows[i].low, rows[i].high, rows[i].finding);
        struct claim_check check = claim_compare(arena, &then, &now);
        if (check.answer != rows[i].answer || strstr(check.why, rows[i].why) == NULL)
            fail_msg("row %zu: %s: %s", i, claim_answer_name(check.answer), check.why);
        assert_false(check.elsewhere);
        assert_string_equal(check.differs, "");
    }
    struct evaluation other = then;
    other.baseline = "another";
    struct claim_check check = claim_compare(arena, &then, &other);
    assert_int_equal(check.answer, CLAIM_UNKNOWN);
    assert_non_null(strstr(check.why, "another baseline"));
    /* An interval that anything overlaps with says nothing. */
    struct evaluation wide = figure(50, 1.1, 100, FINDING_FASTER);
    assert_int_equal(claim_compare(arena, &wide, &then).answer, CLAIM_UNKNOWN);
    wide.speedup.samples = 0;
    assert_int_equal(claim_compare(arena, &wide, &then).answer, CLAIM_UNKNOWN);
    assert_int_equal(claim_compare(arena, &then, &wide).answer, CLAIM_UNKNOWN);
}

static void says_what_differs(void **state)
{
    (void)state;
    ARENA_LOCAL(arena);
    struct evaluation then = figure(2, 1.9, 2.1, FINDING_FASTER), now = then;
    then.device = "{\"cpu\": \"B\\u001b[2J\\u202e\", \"cores\": 2}";
    then.versions = "{\"gcc\": \"11\", \"\\u001b\": \"?\"}";
    struct claim_check check = claim_compare(arena, &then, &now);
    assert_int_equal(check.answer, CLAIM_HOLDS);
    assert_true(check.elsewhere && strstr(check.why, "another machine") != NULL);
    assert_string_equal(check.differs, "cpu B [2J , here A; gcc 11, here 12");
    assert_string_equal(claim_machine(arena, &then), "B [2J , 2 cores");
    now.verdict = VERDICT_REJECTED;
    now.stage = STAGE_CHECK;
    now.reason = "C[0, 1] is \033[1mwrong\nor so";
    check = claim_compare(arena, &then, &now);
    assert_int_equal(check.answer, CLAIM_NOT_RIGHT);
    assert_string_equal(check.why, "rejected at check: C[0, 1] is  [1mwrong");
    then.device = "not JSON";
    assert_int_equal(claim_compare(arena, &then, &now).answer, CLAIM_NOT_RIGHT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_it_wrote), cmocka_unit_test(refuses_what_cannot_be),
        cmocka_unit_test(takes_no_path),       cmocka_unit_test(is_not_damaged_unseen),
        cmocka_unit_test(is_bounded),          cmocka_unit_test(compares_figures),
        cmocka_unit_test(says_what_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
