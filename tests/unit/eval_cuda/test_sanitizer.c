/* What compute-sanitizer says, and what is made of it: its reports as they were seen, and the whole
 * way with a stand-in (tests/fakes/fake_sanitizer.c) around runners on a driver without a GPU. */
#include "scene.h"

#include "eval/cuda/sanitize/tools.h"

#include <pthread.h>
#include <time.h>

/* ---- reports ---- */

#define RACE                                                                                       \
    "========= COMPUTE-SANITIZER\n"                                                                \
    "========= Error: Race reported between Write access at race(float *)+0xb0 in san.cu:4\n"      \
    "=========     and Read access at race(float *)+0xc0 in san.cu:4 [256 hazards]\n"              \
    "========= \n"                                                                                 \
    "done: no error\n"                                                                             \
    "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n"
#define UNINITIALIZED                                                                              \
    "========= Uninitialized __global__ memory read of size 4 bytes\n"                             \
    "=========     at uninit(const float *, float *)+0x60 in /tmp/x/san.cu:5\n"                    \
    "=========     by thread (1,0,0) in block (0,0,0)\n"                                           \
    "=========     Address 0x7f9b06800004\n"                                                       \
    "=========     Saved host backtrace up to driver entry point at kernel launch time\n"          \
    "=========         Host Frame: main [0x8e4d] in san\n"                                         \
    "========= \n"

#define OF_THE_HOST                                                                                \
    "========= Host API memory access error at host access to 0x7f4c1aa01200 of size 64 bytes\n"   \
    "=========     Uninitialized access to 0x7f4c1aa01220 on access by cudaMemcpy source\n"        \
    "========= \n"

static const struct {
    enum sanitizer_tool tool;
    const char *text, *says; /* words of the report; NULL: nothing is reported */
    int errors, warnings;
    bool ended, broken;
} rows[] = {
    {TOOL_MEMCHECK, "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", NULL, 0, 0,
     true, false},
    {TOOL_RACECHECK, RACE,
     "racecheck: Error: Race reported between Write access at race(float *)+0xb0 in san.cu:4, and "
     "Read",
     1, 0, true, false},
    {TOOL_RACECHECK, "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n",
     NULL, 0, 0, true, false},
    {TOOL_RACECHECK, "========= RACECHECK SUMMARY: 3 hazards displayed (0 errors, 3 warnings)\n",
     NULL, 0, 3, true, false},
    {TOOL_INITCHECK, UNINITIALIZED UNINITIALIZED "========= ERROR SUMMARY: 64 errors\n",
     "initcheck: Uninitialized __global__ memory read of size 4 bytes, at uninit(const float *, "
     "float *)+0x60 in san.cu:5, by thread (1,0,0) in block (0,0,0)",
     64, 0, true, false},
    {TOOL_INITCHECK, UNINITIALIZED, "Uninitialized", 1, 0, false, false}, /* not at its end yet */
    /* What names no place in a kernel is none's defect. */
    {TOOL_INITCHECK, OF_THE_HOST "========= ERROR SUMMARY: 1 error\n", NULL, 0, 0, true, true},
    {TOOL_INITCHECK, OF_THE_HOST UNINITIALIZED "========= ERROR SUMMARY: 2 errors\n",
     "at uninit(const float *", 2, 0, true, false},
    {TOOL_MEMCHECK,
     "========= Program hit CUDA_ERROR_NOT_FOUND (error 500) due to \"named symbol not found\" on "
     "CUDA API call to cuGetProcAddress_v2.\n========= \n========= ERROR SUMMARY: 0 errors\n",
     NULL, 0, 0, true, false},
    {TOOL_MEMCHECK,
     "========= Error: Target application terminated before first instrumented API call\n", NULL, 0,
     0, false, true},
    {TOOL_MEMCHECK, "========= Internal Sanitizer Error: The device is out of memory\n", NULL, 0, 0,
     false, true},
    {TOOL_MEMCHECK, "", NULL, 0, 0, false, false},
    {TOOL_MEMCHECK, "=========", NULL, 0, 0, false, false},
    {TOOL_MEMCHECK, "========= ERROR SUMMARY: 99999999999999999999 errors\n", NULL, 0, 0, true,
     false},
};

static void test_reports(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct sanitizer_words words;
        struct buf report;
        buf_init(&report, 1 << 16);
        sanitizer_read(rows[i].tool, SANITIZER_MARK, rows[i].text, strlen(rows[i].text), 4, &words,
                       &report);
        if (words.errors != rows[i].errors || words.warnings != rows[i].warnings ||
            words.ended != rows[i].ended || words.broken != rows[i].broken ||
            (rows[i].says == NULL ? report.length > 0
                                  : strstr(buf_text(&report), rows[i].says) == NULL))
            fail_msg("row %zu: %d errors, %d warnings, ended %d, broken %d\n%s", i, words.errors,
                     words.warnings, words.ended, words.broken, buf_text(&report));
        buf_free(&report);
    }
}

static void test_no_more_than_asked(void **unused)
{
    struct sanitizer_words words;
    struct buf report;
    (void)unused;
    buf_init(&report, 1 << 16);
    const char text[] = UNINITIALIZED UNINITIALIZED UNINITIALIZED;
    sanitizer_read(TOOL_INITCHECK, SANITIZER_MARK, text, strlen(text), 2, &words, &report);
    assert_int_equal(words.errors, 3);
    size_t lines = 0;
    for (const char *at = buf_text(&report); *at != '\0'; at++)
        lines += *at == '\n';
    assert_int_equal(lines, 2);
    buf_free(&report);
}

/* A candidate that prints cannot hide a finding, nor end a report. */
static void test_forged(void **unused)
{
    static const char mark[] = "==5af1==";
    static const char text[] = "==5af1== COMPUTE-SANITIZER\n"
                               "x==5af1== Invalid __global__ read of size 4 bytes\n"
                               "==5af1==     at mm+0x60 in candidate.cu:5\n"
                               "========= ERROR SUMMARY: 0 errors\n"
                               "y==5af1== ERROR SUMMARY: 1 error\n"
                               "========= ERROR SUMMARY: 0 errors";
    struct sanitizer_words words;
    struct buf said, report;
    (void)unused;
    buf_init(&said, 4096);
    buf_init(&report, 4096);
    buf_add_text(&said, text);
    sanitizer_keep_marked(mark, &said);
    assert_int_equal(said.length, strlen(text) - strlen("========= ERROR SUMMARY: 0 errors\n"));
    sanitizer_read(TOOL_MEMCHECK, mark, buf_text(&said), said.length, 4, &words, &report);
    assert_int_equal(words.errors, 1);
    assert_true(words.ended);
    assert_non_null(strstr(buf_text(&report), "candidate.cu:5"));
    buf_reset(&said);
    for (int i = 0; i < 4000; i++) /* a flood without a line's end does not fill the room */
        buf_add_char(&said, 'x');
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 1000; k++)
            buf_add_char(&said, 'x');
        sanitizer_keep_marked(mark, &said);
    }
    assert_true(said.length <= 8192);
    buf_free(&said);
    buf_free(&report);
}

/* ---- the whole way ---- */

static struct buf said_of_all;
static bool together; /* the calls run at the same time */

static void begin(struct scene *scene, const char *says)
{
    setenv("FAKE_SANITIZER", says, 1);
    buf_init(&said_of_all, 1 << 16);
    scene_begin(scene);
}

static void end(struct scene *scene)
{
    scene_end(scene);
    buf_free(&said_of_all);
}

/* Three calls, as of three shapes. */
static int sanitize_launch(struct scene *scene, const char *launch)
{
    const struct program program = scene_program(scene, launch);
    const struct call calls[] = {scene->call, scene->call, scene->call};
    return backend_cuda.sanitize(&scene->lane, &scene->region, scene->artifact, &program, calls, 3,
                                 together, &said_of_all, &scene->err);
}

static int sanitize(struct scene *scene, const char *entry)
{
    return sanitize_launch(scene, scene_launch(scene, entry));
}

static const struct {
    const char *entry, *says;
    enum err_code code; /* ERR_NONE: it passes */
    const char *message, *report;
} ways[] = {
    {"fake_relu", "", ERR_NONE, "", ""},
    {"fake_relu", "racecheck:race", ERR_CHILD, "compute-sanitizer (racecheck) found a defect",
     "candidate.cu:9"},
    {"fake_relu", "memcheck:read,initcheck:read", ERR_CHILD,
     "(memcheck, initcheck) found a defect: Invalid __global__ read of size 4 bytes, at "
     "fake_relu+0x60 in candidate.cu:5, by thread (0,0,0) in block (7,0,0), Access to 0x.. is out "
     "of bounds beside ",
     "out of bounds"},
    {"fake_relu", "initcheck:host", ERR_UNSUPPORTED, "an end: Host API memory access error", ""},
    {"fake_relu", "racecheck:stubborn,racecheck:race", ERR_CHILD, "(racecheck)", "candidate.cu:9"},
    {"fake_relu", "memcheck:stubborn", ERR_NONE, "", ""},
    {"fake_relu", "synccheck:barrier", ERR_CHILD, "(synccheck)", "Divergent"},
    {"fake_relu", "initcheck:broken", ERR_UNSUPPORTED, "does not run here", ""},
    {"fake_relu", "synccheck:silent", ERR_UNSUPPORTED, "did not come to an end", ""},
    {"fake_trap", "", ERR_CHILD, "under compute-sanitizer (memcheck): fake_trap", ""},
    {"fake_trap", "memcheck:late", ERR_CHILD, "under compute-sanitizer (memcheck): fake_trap", ""},
    {"fake_trap", "memcheck:read", ERR_CHILD, "(memcheck) found a defect", "candidate.cu:5"},
    {"fake_gone", "", ERR_UNSUPPORTED, "compute-sanitizer (", ""}, /* it was there in the checks */
    {"fake_die", "", ERR_UNSUPPORTED, "exited during a call", ""}, /* no kernel can */
    {"fake_die", "synccheck:barrier", ERR_CHILD, "(synccheck) found a defect", "Divergent"},
};

static void test_ways(void **unused)
{
    (void)unused;
    for (size_t k = 0; k < 2 * sizeof ways / sizeof ways[0]; k++) {
        struct scene scene;
        size_t i = k / 2;
        together = k % 2 != 0;
        begin(&scene, ways[i].says);
        const char *bare = arena_printf(
            scene.arena, "  - {entry: %s, grid: 1, block: 1, args: []}\n", ways[i].entry);
        int status =
            strcmp(ways[i].entry, "fake_trap") == 0 || strcmp(ways[i].entry, "fake_die") == 0
                ? sanitize_launch(&scene, bare)
                : sanitize(&scene, ways[i].entry);
        if ((status == 0) != (ways[i].code == ERR_NONE) ||
            (status != 0 && (scene.err.code != ways[i].code ||
                             strstr(scene.err.message, ways[i].message) == NULL)) ||
            strstr(buf_text(&said_of_all), ways[i].report) == NULL)
            fail_msg("way %zu: %d %s\n%s", i, status, scene.err.message, buf_text(&said_of_all));
        end(&scene);
    }
}

/* Which tensor of which shape an address is of. */
static void test_places(void **unused)
{
    static struct gpu_control control = {.sanitize.bytes = {4000, 4000}};
    static struct gpu_report report = {.tensors = {0x1000, 0x4000}};
    static const struct {
        uint64_t address;
        const char *text;
    } given[] = {{0x1000, " in X at N=1000"},  {0x4fff, " beside Y at N=1000"},
                 {0x4004, " in Y at N=1000"},  {0x901b, " in X at N=7"},
                 {0x901c, " beside X at N=7"}, {0, ""}};
    struct gpu_host host = {.control = &control, .report = &report};
    struct supervisor tool = {.host = &host};
    struct scene scene;
    (void)unused;
    begin(&scene, "");
    const struct program program = scene_program(&scene, scene_launch(&scene, "fake_relu"));
    struct call calls[] = {scene.call, scene.call};
    calls[1].dims[0] = 7;
    control.call = calls[0];
    place_keep(&tool, 0);
    control.sanitize.bytes[0] = control.sanitize.bytes[1] = 28;
    report.tensors[0] = 0x9000, report.tensors[1] = 0xa000;
    place_keep(&tool, 1);
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        BUF_LOCAL(text, 200);
        place_tell(&tool, &program, calls, given[i].address, &text);
        assert_string_equal(buf_text(&text), given[i].text);
    }
    mem_free(tool.places);
    end(&scene);
}

/* initcheck alone: one call after the other. */
static void test_in_turn(void **unused)
{
    struct scene scene;
    (void)unused;
    for (int k = 0; k < 2; k++) {
        together = true;
        begin(&scene, k == 0 ? "initcheck:alone" : "memcheck:alone");
        assert_int_equal(sanitize(&scene, "fake_relu"), k == 0 ? 0 : -1);
        end(&scene);
    }
}

static void warm(struct scene *scene, bool all)
{
    sanitizer_warm(&scene->lane, &scene->region, all);
}

/* Tools that were started ahead are those that are used, and used once; of another region, or dead
 * meanwhile, others are started. */
static void test_started_ahead(void **unused)
{
    struct scene scene;
    (void)unused;
    begin(&scene, "racecheck:race");
    warm(&scene, true);
    sanitizer_settle();
    setenv("FAKE_SANITIZER", "", 1); /* what is started from here on finds nothing */
    warm(&scene, true);
    assert_int_equal(sanitize(&scene, "fake_relu"), -1);
    assert_non_null(strstr(scene.err.message, "(racecheck) found a defect"));
    scene.err = (struct err){0};
    assert_int_equal(sanitize(&scene, "fake_relu"), 0);
    end(&scene);
    begin(&scene, "racecheck:broken");
    warm(&scene, true);
    sanitizer_settle();
    setenv("FAKE_SANITIZER", "", 1);
    assert_int_equal(sanitize(&scene, "fake_relu"), 0);
    warm(&scene, true);
    end(&scene);
    begin(&scene, "");
    assert_int_equal(sanitize(&scene, "fake_relu"), 0);
    end(&scene);
}

/* The slowest is started alone, and is kept when the others are. */
static void test_slowest_first(void **unused)
{
    struct scene scene;
    (void)unused;
    begin(&scene, "memcheck:read,racecheck:race,initcheck:read,synccheck:barrier");
    warm(&scene, false);
    sanitizer_settle();
    setenv("FAKE_SANITIZER", "", 1);
    warm(&scene, true);
    assert_int_equal(sanitize(&scene, "fake_relu"), -1);
    assert_non_null(strstr(scene.err.message, "compute-sanitizer (racecheck) found a defect"));
    end(&scene);
}

struct later {
    pthread_t thread;
    void (*word)(void);
};

static void cancel(void)
{
    sanitizer_hold(HOLD_CANCEL);
}

static void hold_all(void)
{
    sanitizer_hold(HOLD_ALL);
}

/* Once the tools have the candidate. */
static void *say_later(void *argument)
{
    const struct later *later = (const struct later *)argument;
    const struct timespec step = {.tv_nsec = 20000000};
    nanosleep(&step, NULL);
    later->word();
    return NULL;
}

/* Another thread's word ends a call that hangs, and nothing is left of the tools; what comes next
 * has tools of its own. */
static void test_cancelled(void **unused)
{
    struct scene scene;
    struct later later = {.word = cancel};
    (void)unused;
    begin(&scene, "");
    warm(&scene, true);
    sanitizer_settle();
    scene.call.timeout_ms = 1000000;
    assert_int_equal(pthread_create(&later.thread, NULL, say_later, &later), 0);
    assert_int_equal(
        sanitize_launch(&scene, "  - {entry: fake_hang, grid: 1, block: 1, args: []}\n"), -1);
    assert_int_equal(scene.err.code, ERR_CANCELLED);
    assert_int_equal(pthread_join(later.thread, NULL), 0);
    sanitizer_hold(HOLD_NOTHING);
    scene.err = (struct err){0};
    scene.call.timeout_ms = SCENE_HANG_MS;
    assert_int_equal(sanitize(&scene, "fake_relu"), 0);
    end(&scene);
}

/* Held, nothing is begun, not even by those that are still starting; then the same tools go on.
 * What of them has gone meanwhile had said nothing, and what was held is another candidate's: all
 * of them are others. */
static void test_held(void **unused)
{
    struct scene scene;
    (void)unused;
    for (int gone = 0; gone < 3; gone++) {
        begin(&scene, "racecheck:late,racecheck:race");
        warm(&scene, true);
        sanitizer_hold(HOLD_ALL);
        assert_int_equal(sanitize(&scene, "fake_relu"), 1);
        sanitizer_hold(HOLD_NOTHING);
        setenv("FAKE_SANITIZER", "", 1);
        const struct program program = scene_program(&scene, scene_launch(&scene, "fake_relu"));
        if (gone == 2)
            scene.artifact = scene_cubin(&scene, "another", "");
        if (gone == 1)
            assert_int_equal(cuda_sanitize(&scene.lane, &scene.region, scene.artifact, &program,
                                           NULL, 0, true, &said_of_all, &scene.err),
                             0);
        assert_int_equal(sanitize(&scene, "fake_relu"), gone != 0 ? 0 : -1);
        end(&scene);
    }
}

/* Made ready, and not run: a kernel that would fault has not, until it may run. */
static void test_runs_are_held(void **unused)
{
    struct scene scene;
    struct later later = {.word = hold_all};
    static const char traps[] = "  - {entry: fake_trap, grid: 1, block: 1, args: []}\n";
    (void)unused;
    begin(&scene, "");
    together = true;
    warm(&scene, true);
    sanitizer_hold(HOLD_RUNS);
    assert_int_equal(pthread_create(&later.thread, NULL, say_later, &later), 0);
    assert_int_equal(sanitize_launch(&scene, traps), 1);
    assert_int_equal(pthread_join(later.thread, NULL), 0);
    sanitizer_hold(HOLD_NOTHING);
    assert_int_equal(sanitize_launch(&scene, traps), -1);
    end(&scene);
}

static void test_not_installed(void **unused)
{
    struct scene scene;
    (void)unused;
    setenv("TWAGENT_COMPUTE_SANITIZER", "", 1);
    begin(&scene, "");
    assert_int_equal(sanitize(&scene, "fake_relu"), -1);
    assert_int_equal(scene.err.code, ERR_UNSUPPORTED);
    assert_non_null(strstr(scene.err.message, "not installed"));
    end(&scene);
    setenv("TWAGENT_COMPUTE_SANITIZER", FAKES "fake_sanitizer", 1);
}

int main(int argc, char **argv)
{
    int code;
    if (scene_internal(argc, argv, &code))
        return code;
    setenv("TWAGENT_COMPUTE_SANITIZER", FAKES "fake_sanitizer", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reports),       cmocka_unit_test(test_no_more_than_asked),
        cmocka_unit_test(test_forged),        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_places),        cmocka_unit_test(test_in_turn),
        cmocka_unit_test(test_started_ahead), cmocka_unit_test(test_not_installed),
        cmocka_unit_test(test_cancelled),     cmocka_unit_test(test_held),
        cmocka_unit_test(test_slowest_first), cmocka_unit_test(test_runs_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
