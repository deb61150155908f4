/* Every start in Triton that ships: it parses, its first valid point can be launched at each of the
 * problem's shapes, and is right at the check shapes in Triton's interpreter that are not too
 * large for it; all of them side by side. The interpreter's part is skipped where no Python has
 * Triton. */
#include "kit.h"

#include "base/mem.h"
#include "eval/cuda/run/plan.h"
#include "eval/cuda/triton/triton.h"

#include <dirent.h>

enum { STARTS_MOST = 64, SIDE_BY_SIDE = 3 };

/* An H100's. */
static const struct {
    const char *name;
    int64_t number;
} hopper[] = {{"compute_capability", 90},
              {"sm_count", 132},
              {"warp_size", 32},
              {"l2_bytes", 52428800},
              {"shared_bytes_optin", 232448},
              {"sm_shared_bytes", 233472},
              {"max_threads_per_sm", 2048},
              {"registers_per_sm", 65536}};

static struct names facts;

struct start {
    struct problem *problem;
    const char *path;
    struct candidate *candidate;
    struct names tune;
};

static struct start starts[STARTS_MOST];
static size_t start_count;

static void add(struct problem *problem, const char *path)
{
    BUF_LOCAL(text, 1 << 20);
    struct err err = {0};
    assert_true(start_count < STARTS_MOST);
    struct start *start = &starts[start_count++];
    *start = (struct start){.problem = problem, .path = path};
    if (file_read(path, &text, &err) != 0 ||
        candidate_parse_for(&target_cuda, problem, path, buf_text(&text), text.length, NULL, &facts,
                            &start->candidate, &start->tune, &err) != 0)
        fail_msg("%s", err.message);
    assert_ptr_equal(start->candidate->language, &language_triton);
}

static int find_starts(void **unused)
{
    (void)unused;
    char path[1024];
    struct err err = {0};
    const struct dirent *entry;
    for (size_t i = 0; i < sizeof hopper / sizeof hopper[0]; i++)
        assert_int_equal(names_set(&facts, hopper[i].name, hopper[i].number, &err), 0);
    DIR *problems = opendir(TEST_SOURCE_DIR "/problems");
    assert_non_null(problems);
    while ((entry = readdir(problems)) != NULL) {
        struct problem *problem;
        const char *paths[STARTS_MOST];
        snprintf(path, sizeof path, "%s/problems/%s/spec.yaml", TEST_SOURCE_DIR, entry->d_name);
        if (!file_exists(path))
            continue;
        if (problem_load(path, &problem, &err) != 0)
            fail_msg("%s", err.message);
        size_t count = problem_starts(problem, "triton", paths, STARTS_MOST);
        for (size_t i = 0; i < count; i++)
            add(problem, paths[i]);
        if (count == 0)
            problem_free(problem);
    }
    closedir(problems);
    return start_count > 0 ? 0 : -1;
}

static int forget(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < start_count; i++) {
        candidate_free(starts[i].candidate);
        if (i + 1 == start_count || starts[i + 1].problem != starts[i].problem)
            problem_free(starts[i].problem);
    }
    return 0;
}

static void test_plans(void **unused)
{
    (void)unused;
    static struct plan plan;
    for (size_t i = 0; i < start_count; i++) {
        const struct start *start = &starts[i];
        const struct program program = {start->problem, start->candidate, &start->tune, NULL};
        struct err err = {0};
        for (size_t k = 0; k < start->problem->shape_count; k++) {
            struct layout layout;
            struct call call;
            if (layout_make(start->problem, &start->problem->shapes[k], start->candidate,
                            &start->tune, 0, &layout, &err) != 0)
                fail_msg("%s: %s", start->path, err.message);
            call_make(&layout, 0, 1000, &call);
            if (plan_make(&program, &facts, &call, &plan, &err) != 0)
                fail_msg("%s: %s", start->path, err.message);
        }
    }
}

/* In a process of its own: its exit code is 0 where all is right. */
static int interpret(const struct start *start)
{
    struct arena *arena = arena_new();
    const struct program program = {start->problem, start->candidate, &start->tune, NULL};
    struct interpreted told;
    struct err err = {0};
    if (triton_interpret(arena, &program, &facts, &told, &err) != 0)
        printf("%s: %s\n", start->path, err.message);
    else if (told.wrong != NULL)
        printf("%s: %s\n%s\n", start->path, told.wrong, told.details != NULL ? told.details : "");
    else if (told.passed == told.tried && told.tried > 0)
        return 0;
    fflush(stdout);
    return 1;
}

static bool wait_one(void)
{
    int status;
    assert_true(wait(&status) > 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* A kernel is Python's, which no sanitizer watches. What is ours differs with a problem's tensors.
 */
static bool is_left_out(size_t which)
{
    bool like = false;
#ifdef __SANITIZE_ADDRESS__
    const struct problem *problem = starts[which].problem;
    for (size_t i = 0; i < which && !like; i++)
        like = starts[i].problem->input_count == problem->input_count &&
               starts[i].problem->inputs[0].dtype == problem->inputs[0].dtype &&
               starts[i].problem->inputs[0].rank == problem->inputs[0].rank;
#else
    (void)which;
#endif
    return like;
}

static void test_interpreted(void **unused)
{
    (void)unused;
    struct interpreter interpreter;
    struct err err = {0};
    size_t begun = 0, right = 0;
    if (triton_find(&interpreter, &err) != 0) {
        print_message("skipped: %s\n", err.message);
        skip();
    }
    for (size_t i = 0; i < start_count; i++) {
        if (is_left_out(i))
            continue;
        if (begun++ >= SIDE_BY_SIDE)
            right += wait_one();
        pid_t pid = fork();
        if (pid == 0)
            _exit(interpret(&starts[i]));
        assert_true(pid > 0);
    }
    for (size_t i = begun < SIDE_BY_SIDE ? begun : SIDE_BY_SIDE; i > 0; i--)
        right += wait_one();
    assert_int_equal(right, begun);
}

/* The launches of what a build would compile. */
static const struct value *launches_of(const struct start *start, enum build_flavour flavour,
                                       struct arena *arena, struct build *build)
{
    struct lane_facts lane = {.facts = facts};
    struct value *request;
    struct err err = {0};
    char folder[] = "/tmp/twagent-test-XXXXXX", path[64];
    BUF_LOCAL(text, 1 << 20);
    assert_non_null(mkdtemp(folder));
    if (backend_cuda.build(arena, &lane, start->problem, start->candidate, &start->tune, NULL,
                           flavour, folder, build, &err) != 0)
        fail_msg("%s: %s", start->path, err.message);
    snprintf(path, sizeof path, "%s/request.json", folder);
    assert_int_equal(file_read(path, &text, &err), 0);
    assert_int_equal(
        value_parse_json(arena, "request", buf_text(&text), text.length, &request, &err), 0);
    assert_int_equal(file_remove_tree(folder, &err), 0);
    return value_get(request, "launches");
}

/* What is to be compiled for the main shape alone is the first of what is for all. */
static void test_main_alone(void **unused)
{
    (void)unused;
    struct interpreter interpreter;
    struct err err = {0};
    size_t fewer = 0;
    if (triton_find(&interpreter, &err) != 0) {
        print_message("skipped: %s\n", err.message);
        skip();
    }
    setenv("TWAGENT_CUDA_SERVER", "0", 1);
    for (size_t i = 0; i < start_count; i++) {
        struct arena *arena = arena_new();
        struct build all, alone;
        const struct value *every = launches_of(&starts[i], BUILD_FAST, arena, &all);
        const struct value *first = launches_of(&starts[i], BUILD_MAIN, arena, &alone);
        assert_true(backend_cuda.narrows(starts[i].candidate));
        assert_int_equal(every->count, first->count);
        assert_int_equal(alone.width, every->count);
        fewer += alone.width < all.width;
        for (size_t k = 0; k < every->count; k++) {
            const struct value *of_all = value_get(every->items[k], "variants");
            const struct value *main_one = value_get(first->items[k], "variants");
            assert_int_equal(main_one->count, 1);
            for (size_t j = 0; j < main_one->items[0]->count; j++)
                assert_string_equal(main_one->items[0]->items[j]->text,
                                    of_all->items[0]->items[j]->text);
        }
        arena_free(arena);
    }
    assert_true(fewer * 2 > start_count);
}

int main(int argc, char **argv)
{
    int code;
    if (kit_internal(argc, argv, &code))
        return code;
    kit_start_self();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_main_alone),
        cmocka_unit_test(test_interpreted),
    };
    return cmocka_run_group_tests(tests, find_starts, forget);
}
