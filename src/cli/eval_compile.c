#include "cli/eval_compile.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/print.h"
#include "eval/backend/build.h"
#include "eval/candidate/candidate.h"
#include "eval/cuda/compile/compile.h"
#include "eval/cuda/compile/cubin.h"
#include "eval/cuda/compile/ptxas.h"
#include "eval/cuda/driver/device.h"
#include "eval/cuda/probe/probe.h"
#include "eval/cuda/profile/occupancy.h"
#include "eval/cuda/run/plan.h"
#include "eval/problem/torch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NVIDIA H100 SXM, 80 GB: what its driver answers. */
static const char assumed_name[] = "NVIDIA H100 SXM";
static const struct {
    const char *name;
    int64_t number;
} assumed[] = {{"compute_capability", 90},
               {"sm_count", 132},
               {"warp_size", 32},
               {"l2_bytes", 50 << 20},
               {"shared_bytes_optin", 232448},
               {"sm_shared_bytes", 233472},
               {"max_threads_per_sm", 2048},
               {"registers_per_sm", 65536}};

enum { DIAGNOSTICS_MOST = 1 << 14, RECORD_MOST = 1 << 20, CUBIN_MOST = 64 << 20 };

struct trial {
    const struct eval_compile *asked;
    struct arena *arena;
    struct problem *problem;
    struct candidate *candidate;
    struct names tune;
    struct lane_facts lane; /* what is assumed of the GPU */
    const char *arch, *no_compiler;
    struct cuda_report report;
    struct plan plan; /* of the main shape */
    struct evaluation evaluation;
};

/* True where there is no GPU at all; *missing says why. */
static bool no_device(struct err *missing)
{
    const int cores[] = {0};
    struct lane_facts lane = {.gpu_index = 0}; /* where there is one, another is a wrong number */
    struct arena *arena = arena_new();
    bool none = cuda_probe(cores, 1, false, arena, &lane, missing) != 0;
    arena_free(arena);
    return none;
}

/* ---- what is wrong with it ---- */

static int refuse(struct trial *trial, enum stage stage, const char *reason, const char *details)
{
    trial->evaluation.stage = stage;
    trial->evaluation.reason = arena_strdup(trial->arena, reason);
    trial->evaluation.details = arena_strdup(trial->arena, details);
    return -1;
}

static int read_candidate(struct trial *trial, struct err *err)
{
    const struct eval_compile *asked = trial->asked;
    struct value *tune = NULL;
    if (candidate_parse(trial->problem, asked->name, asked->source, asked->length,
                        &trial->candidate, err))
        return -1;
    if (!trial->candidate->language->plan)
        return err_set(err, ERR_USAGE, "a source in %s does not run on the backend cuda",
                       trial->candidate->language->name);
    if (asked->tune &&
        value_parse_json(trial->arena, "tune", asked->tune, strlen(asked->tune), &tune, err))
        return -1;
    return tune_given(trial->candidate, tune, &trial->problem->shapes[0], &trial->lane.facts,
                      &trial->tune, err);
}

/* As the process that would launch it looks at it. */
static int check_cubin(struct trial *trial, const char *path, struct err *err)
{
    struct buf image;
    struct cubin cubin;
    buf_init(&image, CUBIN_MOST);
    int failed = file_read(path, &image, err);
    if (!failed && cubin_loadable(buf_text(&image), image.length, &cubin, err)) {
        trial->evaluation.verdict = VERDICT_REJECTED;
        failed = refuse(trial, STAGE_CHECK, err->message, "");
    }
    buf_free(&image);
    return failed;
}

/* A machine without NVRTC says so in no_compiler, and goes on. */
static int compile_in(struct trial *trial, const char *folder, struct buf *errors, struct err *err)
{
    struct build build;
    if (cuda_build(trial->arena, trial->arch, trial->problem, trial->candidate, &trial->tune, NULL,
                   BUILD_FAST, folder, &build, err)) {
        if (err->code != ERR_ENVIRONMENT)
            return -1;
        trial->no_compiler = arena_strdup(trial->arena, err->message);
        return 0;
    }
    if (build_run_heard(&build.spec, errors, err))
        return -1;
    if (cuda_report_read(trial->arena, build.log, &trial->report, err))
        return -1;
    return check_cubin(trial, build.artifact, err);
}

static int compile(struct trial *trial, struct err *err)
{
    char folder[] = "/tmp/twagent-eval-XXXXXX";
    struct err ignored;
    struct buf errors, text;
    if (!mkdtemp(folder))
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make %s", folder);
    buf_init(&errors, DIAGNOSTICS_MOST << 3);
    buf_init(&text, DIAGNOSTICS_MOST);
    setenv("TWAGENT_CUDA_SERVER", "0", 1); /* one compile is all there is */
    int failed = compile_in(trial, folder, &errors, err);
    if (failed && err->code == ERR_CHILD) {
        cuda_diagnostics(trial->candidate, buf_text(&errors), errors.length, &text);
        refuse(trial, STAGE_COMPILE,
               arena_printf(trial->arena, "does not compile for %s", trial->arch), buf_text(&text));
    }
    (void)(file_remove_tree(folder, &ignored) == 0);
    buf_free(&errors);
    buf_free(&text);
    return failed;
}

static const char *shape_words(struct trial *trial, const struct names *shape)
{
    struct buf text;
    buf_init(&text, 1024);
    for (size_t i = 0; i < shape->count; i++)
        buf_addf(&text, "%s%s=%lld", i ? "," : "", shape->name[i], (long long)shape->number[i]);
    const char *words = arena_strdup(trial->arena, buf_text(&text));
    buf_free(&text);
    return words;
}

/* At each shape that it would be checked at; the main one last, since it is kept. */
static int make_plans(struct trial *trial, struct err *err)
{
    const struct problem *problem = trial->problem;
    const struct program program = {
        .problem = problem, .candidate = trial->candidate, .tune = &trial->tune};
    for (size_t i = problem->shape_count; i-- > 0;) {
        struct layout layout;
        struct call call = {0};
        int failed = layout_make(problem, &problem->shapes[i], trial->candidate, &trial->tune, 0,
                                 &layout, err);
        if (!failed) {
            call_make(&layout, 0, 0, &call);
            failed = plan_make(&program, &trial->lane.facts, &call, &trial->plan, err);
        }
        if (failed) {
            trial->evaluation.verdict = VERDICT_REJECTED; /* as where a GPU refuses it */
            return refuse(trial, STAGE_CHECK, err->message,
                          arena_printf(trial->arena, "its launch plan at %s, on an %s\n",
                                       shape_words(trial, &problem->shapes[i]), assumed_name));
        }
    }
    return 0;
}

/* 0: nothing is wrong with it; -1: the evaluation says what is; 1: *err says what is of ours. */
static int try_all(struct trial *trial, struct err *err)
{
    const struct eval_compile *asked = trial->asked;
    if (problem_load_with(asked->problem, asked->settings->search.python, &trial->problem, err))
        return 1;
    if (read_candidate(trial, err))
        return refuse(trial, STAGE_PARSE, err->message, err->message);
    if (compile(trial, err) == 0 && make_plans(trial, err) == 0)
        return 0;
    return trial->evaluation.stage == STAGE_PARSE ? 1 : -1;
}

/* ---- what is known of it ---- */

static void print_entry(const struct cuda_resources *entry)
{
    printf("  %-10s %s: %lld registers, ", "entry", entry->entry, (long long)entry->registers);
    if (entry->spill_store_bytes > 0 || entry->spill_load_bytes > 0)
        printf("spills %lld bytes out and %lld in", (long long)entry->spill_store_bytes,
               (long long)entry->spill_load_bytes);
    else
        printf("no spills");
    printf(", %lld bytes of static shared memory, %lld of stack\n", (long long)entry->shared_bytes,
           (long long)entry->stack_bytes);
}

static struct occupancy occupancy(const struct trial *trial, const struct plan_launch *launch)
{
    const struct cuda_resources *entry = ptxas_entry(&trial->report, launch->entry);
    const struct occupancy_ask ask = {
        .registers = entry ? entry->registers : 0,
        .shared_bytes = launch->shared_bytes + (entry ? entry->shared_bytes : 0),
        .threads = (int64_t)launch->block[0] * launch->block[1] * launch->block[2],
        .blocks = (int64_t)launch->grid[0] * launch->grid[1] * launch->grid[2]};
    return occupancy_of(&trial->lane.facts, &ask);
}

static void print_launch(struct trial *trial, const struct plan_launch *launch)
{
    struct occupancy fits = occupancy(trial, launch);
    printf("  %-10s %s at %s: grid %u x %u x %u, block %u x %u x %u, %u bytes of dynamic shared "
           "memory",
           "launch", launch->entry, shape_words(trial, &trial->problem->shapes[0]), launch->grid[0],
           launch->grid[1], launch->grid[2], launch->block[0], launch->block[1], launch->block[2],
           launch->shared_bytes);
    if (!trial->no_compiler && fits.blocks_per_sm > 0)
        printf("; %.0f %% of the warps fit", 100 * fits.theoretical);
    putchar('\n');
}

static void print_words(struct trial *trial)
{
    printf("no verdict: nothing was run, since there is no GPU here\n");
    if (trial->no_compiler)
        printf("  %-10s no: %s\n", "compiled", trial->no_compiler);
    else
        printf("  %-10s by %s for %s, in %.0f ms%s (the target where no GPU says its own)\n",
               "compiled", trial->report.version, trial->arch, trial->report.compile_ms,
               trial->report.cached ? ", before this" : "");
    for (size_t i = 0; i < trial->report.entry_count; i++)
        print_entry(&trial->report.entries[i]);
    printf("  %-10s can be launched at the %zu shapes of the problem, if the GPU is as an %s\n",
           "plan", trial->problem->shape_count, assumed_name);
    for (size_t i = 0; i < trial->plan.launch_count; i++)
        print_launch(trial, &trial->plan.launches[i]);
}

static void put_extent(struct json *json, const char *key, const uint32_t extent[3])
{
    json_key(json, key);
    json_array(json);
    for (int i = 0; i < 3; i++)
        json_int(json, extent[i]);
    json_array_end(json);
}

static void put_plan(const struct trial *trial, struct json *json)
{
    json_key(json, "plan");
    json_object(json);
    json_put_text(json, "gpu", assumed_name);
    json_put_int(json, "shapes", (int64_t)trial->problem->shape_count);
    json_key(json, "launches");
    json_array(json);
    for (size_t i = 0; i < trial->plan.launch_count; i++) {
        const struct plan_launch *launch = &trial->plan.launches[i];
        json_object(json);
        json_put_text(json, "entry", launch->entry);
        put_extent(json, "grid", launch->grid);
        put_extent(json, "block", launch->block);
        json_put_int(json, "shared_bytes", launch->shared_bytes);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void print_json(const struct trial *trial, const struct err *missing)
{
    struct buf text;
    struct json json;
    buf_init(&text, RECORD_MOST);
    json_init(&json, &text);
    json_object(&json);
    json_key(&json, "verdict");
    json_null(&json);
    json_key(&json, "missing");
    json_array(&json);
    json_text(&json, missing->message);
    if (trial->no_compiler)
        json_text(&json, trial->no_compiler);
    json_array_end(&json);
    json_put_text(&json, "problem", trial->problem->name);
    json_key(&json, "tune");
    json_object(&json);
    for (size_t i = 0; i < trial->tune.count; i++)
        json_put_int(&json, trial->tune.name[i], trial->tune.number[i]);
    json_object_end(&json);
    json_key(&json, "compiled");
    if (trial->no_compiler)
        json_null(&json);
    else
        ptxas_put(&trial->report, &json);
    put_plan(trial, &json);
    json_object_end(&json);
    printf("%s\n", buf_text(&text));
    buf_free(&text);
}

/* ---- the whole ---- */

static int report_wrong(const struct trial *trial)
{
    const struct eval_compile *asked = trial->asked;
    if (asked->print)
        asked->print(&trial->evaluation, NULL, asked->settings->json);
    else if (asked->settings->json)
        print_evaluation_json(&trial->evaluation, stdout);
    else
        print_evaluation_of(&trial->evaluation, asked->name, stdout);
    return EXIT_NONE;
}

static int report(struct trial *trial, const struct err *missing)
{
    struct err lack = {0};
    if (trial->asked->settings->json)
        print_json(trial, missing);
    else
        print_words(trial);
    fflush(stdout); /* before what stderr says */
    (void)err_set(&lack, ERR_ENVIRONMENT, "no verdict without a GPU: %s%s%s", missing->message,
                  trial->no_compiler ? "; " : "", trial->no_compiler ? trial->no_compiler : "");
    return command_fail(&lack);
}

int eval_compile(const struct eval_compile *asked)
{
    struct err missing = {0};
    if (!no_device(&missing))
        return -1;
    struct trial *trial = MEM_NEW(struct trial);
    struct err err = {0};
    trial->asked = asked;
    trial->arena = arena_new();
    for (size_t i = 0; i < sizeof assumed / sizeof assumed[0]; i++)
        (void)!names_set(&trial->lane.facts, assumed[i].name, assumed[i].number, &err);
    trial->arch = device_arch(trial->arena, &trial->lane);
    trial->evaluation = (struct evaluation){.verdict = VERDICT_FAILED,
                                            .stage = STAGE_PARSE,
                                            .reason = "",
                                            .details = "",
                                            .baseline = "",
                                            .identity = "",
                                            .tune = "{}",
                                            .metrics = "{}",
                                            .device = "{}",
                                            .versions = "{}",
                                            .baselines = "{}"};
    int found = try_all(trial, &err);
    int code = found == 0  ? report(trial, &missing)
               : found < 0 ? report_wrong(trial)
                           : command_fail(&err);
    candidate_free(trial->candidate);
    problem_free(trial->problem);
    arena_free(trial->arena);
    mem_free(trial);
    return code;
}
