/* What can be said of a candidate without a GPU: its front matter read, its source compiled, its
 * launch plan computed as for the GPU that most have in mind. */
#include "eval/cuda/private.h"

#include "base/file.h"
#include "eval/backend/build.h"
#include "eval/cuda/compile/compile.h"
#include "eval/cuda/compile/cubin.h"
#include "eval/cuda/compile/ptxas.h"
#include "eval/cuda/driver/device.h"
#include "eval/cuda/probe/probe.h"
#include "eval/cuda/profile/profile.h"
#include "eval/cuda/run/plan.h"
#include "eval/cuda/run/variants.h"
#include "eval/cuda/target.h"
#include "eval/cuda/triton/triton.h"
#include "eval/data/evaluation.h"

#include <errno.h>
#include <stdlib.h>

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

enum { DIAGNOSTICS_MOST = 1 << 14, CUBIN_MOST = 64 << 20 };

struct trial {
    const struct compile_only *asked;
    struct arena *arena;
    struct candidate *candidate;
    struct names tune;
    struct lane_facts lane; /* what is assumed of the GPU */
    const char *arch, *no_compiler;
    struct cuda_report report;
    struct variants *variants; /* of Triton's compiles; NULL: the front matter says it all */
    struct interpreted interpreted;
    struct plan plan; /* of the main shape */
    struct evaluation *evaluation;
};

/* True where there is no GPU at all; *missing says why. */
static bool no_device(struct err *missing)
{
    const int cores[] = {0};
    struct lane_facts lane = {.gpu_index = 0}; /* where there is one, another is a wrong number */
    ARENA_LOCAL(arena);
    return cuda_probe(cores, 1, false, arena, &lane, missing) != 0;
}

/* ---- what is wrong with it ---- */

static int refuse(struct trial *trial, enum stage stage, const char *reason, const char *details)
{
    return evaluation_refuse(trial->evaluation, trial->arena, stage, reason, details);
}

static struct program program_of(const struct trial *trial)
{
    return (struct program){
        .problem = trial->asked->problem, .candidate = trial->candidate, .tune = &trial->tune};
}

static bool is_triton(const struct trial *trial)
{
    return trial->candidate->language == &language_triton;
}

/* As the process that would launch it looks at it. */
static int check_image(struct trial *trial, const char *image, size_t bytes, struct err *err)
{
    struct cubin cubin;
    return cubin_loadable(image, bytes, &cubin, err) != 0
               ? refuse(trial, STAGE_CHECK, err->message, "")
               : 0;
}

static int check_cubin(struct trial *trial, const char *path, struct err *err)
{
    BUF_LOCAL(image, CUBIN_MOST);
    int failed = file_read(path, &image, err);
    if (!failed && trial->variants == NULL)
        return check_image(trial, buf_text(&image), image.length, err);
    for (size_t i = 0; !failed && i < trial->variants->launch_count; i++)
        for (size_t k = 0; !failed && k < trial->variants->launches[i].count; k++) {
            const struct kernel *kernel = &trial->variants->launches[i].variants[k];
            failed = check_image(trial, buf_text(&image) + kernel->offset, kernel->bytes, err);
        }
    return failed;
}

static int build_in(struct trial *trial, const char *folder, struct build *build, struct err *err)
{
    const struct program program = program_of(trial);
    if (is_triton(trial))
        return triton_build(trial->arena, trial->arch, &program, &trial->lane.facts, false, folder,
                            build, err);
    return cuda_build(trial->arena, trial->arch, program.problem, program.candidate, program.tune,
                      NULL, BUILD_FAST, folder, build, err);
}

/* A machine without the compiler says so in no_compiler, and goes on. */
static int compile_in(struct trial *trial, const char *folder, struct buf *errors, bool *killed,
                      struct err *err)
{
    struct build build;
    if (build_in(trial, folder, &build, err)) {
        if (err->code == ERR_LIMIT)
            return refuse(trial, STAGE_PARSE, err->message, err->message);
        if (err->code != ERR_ENVIRONMENT)
            return -1;
        trial->no_compiler = arena_strdup(trial->arena, err->message);
        return 0;
    }
    if (build_run_heard(&build.spec, errors, killed, err) ||
        cuda_report_read(trial->arena, build.log, &trial->report, err) ||
        variants_read(trial->arena, build.log, &trial->variants, err))
        return -1;
    return check_cubin(trial, build.artifact, err);
}

static void diagnose(struct trial *trial, const struct buf *errors, struct buf *text)
{
    if (is_triton(trial))
        triton_diagnostics(trial->asked->name, buf_text(errors), errors->length, text);
    else
        cuda_diagnostics(trial->candidate, buf_text(errors), errors->length, text);
}

static int compile(struct trial *trial, struct err *err)
{
    char folder[] = "/tmp/twagent-eval-XXXXXX";
    struct err ignored;
    bool killed = false;
    if (!mkdtemp(folder))
        return err_set_errno(err, ERR_ENVIRONMENT, errno, "cannot make %s", folder);
    BUF_LOCAL(errors, DIAGNOSTICS_MOST << 3);
    BUF_LOCAL(text, DIAGNOSTICS_MOST);
    setenv("TWAGENT_CUDA_SERVER", "0", 1); /* one compile is all there is */
    int failed = compile_in(trial, folder, &errors, &killed, err);
    if (killed) {
        static const char reason[] = "the compiler was killed";
        refuse(trial, STAGE_COMPILE, reason, reason);
        trial->evaluation->ours = true;
    } else if (failed && err->code == ERR_CHILD) {
        diagnose(trial, &errors, &text);
        refuse(trial, STAGE_COMPILE,
               arena_printf(trial->arena, "does not compile for %s", trial->arch), buf_text(&text));
    }
    (void)(file_remove_tree(folder, &ignored) == 0);
    return failed;
}

static const char *shape_words(struct trial *trial, const struct names *shape)
{
    BUF_LOCAL(text, 1024);
    for (size_t i = 0; i < shape->count; i++)
        buf_addf(&text, "%s%s=%lld", i ? "," : "", shape->name[i], (long long)shape->number[i]);
    return buf_keep(&text, trial->arena);
}

/* At each shape that it would be checked at; the main one last, since it is kept. */
static int make_plans(struct trial *trial, struct err *err)
{
    const struct problem *problem = trial->asked->problem;
    const struct program program = program_of(trial);
    for (size_t i = problem->shape_count; i-- > 0;) {
        struct layout layout;
        struct call call = {0};
        int failed = layout_make(problem, &problem->shapes[i], trial->candidate, &trial->tune, 0,
                                 &layout, err);
        if (!failed) {
            call_make(&layout, 0, 0, &call);
            failed = plan_make_of(&program, trial->variants, &trial->lane.facts, &call,
                                  &trial->plan, err);
        }
        if (failed && err->code == ERR_ROOM && trial->candidate->tune_count > 0) {
            evaluation_leave_out(trial->evaluation, trial->arena, err->message);
            return -1;
        }
        if (failed) /* rejected, as where a GPU refuses it */
            return refuse(trial, STAGE_CHECK, err->message,
                          arena_printf(trial->arena, "its launch plan at %s, on an %s\n",
                                       shape_words(trial, &problem->shapes[i]), assumed_name));
    }
    return 0;
}

/* Triton brings an interpreter: what comes out of it is looked at, and proves nothing of a GPU. */
static int interpret(struct trial *trial, struct err *err)
{
    const struct program program = program_of(trial);
    if (!is_triton(trial) || trial->no_compiler)
        return 0;
    if (triton_interpret(trial->arena, &program, &trial->lane.facts, &trial->interpreted, err))
        return -1;
    const char *wrong = trial->interpreted.wrong;
    if (wrong == NULL)
        return 0;
    trial->evaluation->checks_passed = (int64_t)trial->interpreted.passed;
    trial->evaluation->checks_total = (int64_t)trial->interpreted.tried;
    const char *details = trial->interpreted.details;
    refuse(trial, STAGE_CHECK, wrong, details ? details : "in Triton's interpreter, on the CPU\n");
    return -1;
}

/* ---- what is known of it ---- */

static void add_entry(const struct cuda_resources *entry, struct buf *words)
{
    if (entry->registers < 0)
        return;
    buf_addf(words, "  %-10s %s: %lld registers, ", "entry", entry->entry,
             (long long)entry->registers);
    if (entry->spill_store_bytes > 0 || entry->spill_load_bytes > 0)
        buf_addf(words, "spills %lld bytes out and %lld in, ", (long long)entry->spill_store_bytes,
                 (long long)entry->spill_load_bytes);
    else if (entry->spill_store_bytes == 0) /* of Triton's ptxas it is not known */
        buf_addf(words, "no spills, ");
    buf_addf(words, "%lld bytes of static shared memory, %lld of stack\n",
             (long long)entry->shared_bytes, (long long)entry->stack_bytes);
}

static struct occupancy occupancy(const struct trial *trial, const struct plan_launch *launch)
{
    const struct occupancy_ask ask =
        profile_ask(launch, ptxas_entry(&trial->report, launch->entry));
    return occupancy_of(&trial->lane.facts, &ask);
}

static void add_launch(struct trial *trial, const struct plan_launch *launch, struct buf *words)
{
    struct occupancy fits = occupancy(trial, launch);
    buf_addf(words,
             "  %-10s %s at %s: grid %u x %u x %u, block %u x %u x %u, %u bytes of dynamic shared "
             "memory",
             "launch", launch->entry, shape_words(trial, &trial->asked->problem->shapes[0]),
             launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
             launch->block[2], launch->shared_bytes);
    if (!trial->no_compiler && !is_triton(trial) && fits.blocks_per_sm > 0)
        buf_addf(words, "; %.0f %% of the warps fit", 100 * fits.theoretical);
    buf_add_char(words, '\n');
}

static void add_words(struct trial *trial, struct buf *words)
{
    const struct interpreted *told = &trial->interpreted;
    if (told->tried > 0)
        buf_addf(words,
                 "no verdict: right on %zu of %zu check shapes in Triton's interpreter, not timed, "
                 "since there is no GPU here\n",
                 told->passed, told->tried);
    else
        buf_addf(words, "no verdict: nothing was run, since there is no GPU here\n");
    if (told->left_out && *told->left_out)
        buf_addf(words, "  %-10s %s\n", "left out", told->left_out);
    if (trial->no_compiler)
        buf_addf(words, "  %-10s no: %s\n", "compiled", trial->no_compiler);
    else
        buf_addf(words,
                 "  %-10s by %s for %s, in %.0f ms%s (the target where no GPU says its own)\n",
                 "compiled", trial->report.version, trial->arch, trial->report.compile_ms,
                 trial->report.cached ? ", before this" : "");
    for (size_t i = 0; i < trial->report.entry_count; i++)
        add_entry(&trial->report.entries[i], words);
    buf_addf(words,
             "  %-10s can be launched at the %zu shapes of the problem, if the GPU is as an %s\n",
             "plan", trial->asked->problem->shape_count, assumed_name);
    for (size_t i = 0; i < trial->plan.launch_count; i++)
        add_launch(trial, &trial->plan.launches[i], words);
}

static void put_plan(const struct trial *trial, struct json *json)
{
    json_put_object(json, "plan");
    json_put_text(json, "gpu", assumed_name);
    json_put_int(json, "shapes", (int64_t)trial->asked->problem->shape_count);
    json_put_array(json, "launches");
    for (size_t i = 0; i < trial->plan.launch_count; i++) {
        const struct plan_launch *launch = &trial->plan.launches[i];
        json_object(json);
        json_put_text(json, "entry", launch->entry);
        profile_put_extent(json, "grid", launch->grid);
        profile_put_extent(json, "block", launch->block);
        json_put_int(json, "shared_bytes", launch->shared_bytes);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void put_facts(const struct trial *trial, const struct err *missing, struct json *json)
{
    json_put_array(json, "missing");
    json_text(json, missing->message);
    if (trial->no_compiler)
        json_text(json, trial->no_compiler);
    json_array_end(json);
    json_put_text(json, "problem", trial->asked->problem->name);
    json_put_names(json, "tune", &trial->tune);
    json_key(json, "compiled");
    if (trial->no_compiler)
        json_null(json);
    else
        ptxas_put(&trial->report, json);
    put_plan(trial, json);
    if (trial->interpreted.tried == 0)
        return;
    json_put_object(json, "interpreted");
    json_put_int(json, "passed", (int64_t)trial->interpreted.passed);
    json_put_int(json, "tried", (int64_t)trial->interpreted.tried);
    json_object_end(json);
}

int cuda_compile_only(const struct compile_only *asked, struct arena *arena,
                      struct evaluation *evaluation, struct buf *words, struct json *json,
                      struct err *err)
{
    struct err missing = {0};
    struct trial trial = {.asked = asked, .arena = arena, .evaluation = evaluation};
    if (!no_device(&missing))
        return 1;
    *evaluation = evaluation_empty();
    for (size_t i = 0; i < sizeof assumed / sizeof assumed[0]; i++)
        (void)!names_set(&trial.lane.facts, assumed[i].name, assumed[i].number, err);
    trial.arch = device_arch(arena, &trial.lane);
    int failed =
        candidate_parse_for(&target_cuda, asked->problem, asked->name, asked->source, asked->length,
                            asked->tune, &trial.lane.facts, &trial.candidate, &trial.tune, err);
    if (failed)
        refuse(&trial, STAGE_PARSE, err->message, err->message);
    else
        failed = compile(&trial, err) || make_plans(&trial, err) || interpret(&trial, err) ? -1 : 0;
    if (!failed) {
        add_words(&trial, words);
        put_facts(&trial, &missing, json);
        (void)err_set(err, ERR_ENVIRONMENT, "no verdict without a GPU: %s%s%s", missing.message,
                      trial.no_compiler ? "; " : "", trial.no_compiler ? trial.no_compiler : "");
    }
    candidate_free(trial.candidate);
    return failed && *evaluation->reason ? -1 : 0;
}
