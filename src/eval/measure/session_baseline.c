/* eval/measure/session_baseline: what speed-ups are against: sources built once a session, and the
 * reference itself. On the CPU the sources are those of the spec; a backend whose candidates have
 * launch plans has its own: every file of its languages in baselines/, by the file's name.
 * Their runners are stopped while they are not called: a baseline is trusted, and may meet a set
 * twice. */
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "eval/backend/build.h"
#include "eval/data/stats.h"
#include "eval/data/timeline.h"
#include "eval/measure/session_private.h"
#include "eval/problem/torch.h"
#include "eval/sets/view.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What a library does for the problem: baselines/torch.py, a PyTorch
 * `Model` whose forward takes the inputs and then the dims. Inside src/eval. Worker's measuring
 * thread. */

enum { BINDING_MOST = 1 << 18 };

/* As the last baseline. */
static void library_add(struct session *session)
{
    const char *path =
        arena_printf(session->arena, "%s/baselines/torch.py", session->problem->folder);
    if (session->baseline_count < BASELINES_MOST && session->problem->torch == NULL &&
        file_is_regular(path))
        session->baselines[session->baseline_count++] =
            (struct baseline){.name = "torch", .library = path};
}

/* Inputs as they are, then every dim of the main shape, where alone baselines are called. */
static const char *binding_of(const struct session *session)
{
    const struct problem *problem = session->problem;
    const struct names *dims = &session->shapes[0].dims;
    JSON_LOCAL(json, text, BINDING_MOST);
    json_object(&json);
    json_put_array(&json, "arguments");
    for (size_t i = 0; i < problem->input_count; i++) {
        json_object(&json);
        json_put_text(&json, "input", problem->inputs[i].name);
        json_put_text(&json, "torch", dtype_name(problem->inputs[i].dtype));
        json_object_end(&json);
    }
    for (size_t i = 0; i < dims->count; i++) {
        json_object(&json);
        json_put_int(&json, "value", dims->number[i]);
        json_object_end(&json);
    }
    json_array_end(&json);
    json_put_array(&json, "parameters");
    json_array_end(&json);
    json_object_end(&json);
    return arena_strdup(session->arena, buf_text(&text));
}

/* Starts a Python with torch; ERR_ENVIRONMENT or what PyTorch says where that cannot be. */
static int library_open(struct session *session, struct baseline *baseline, struct err *err)
{
    struct arena *arena = session->arena;
    struct problem *shadow = ARENA_NEW(arena, struct problem);
    struct problem_torch *torch = ARENA_NEW(arena, struct problem_torch);
    struct err ignored;
    const char *python = session->options.python;
    bool found =
        python != NULL && interpreter_find_torch(python, arena, &torch->python, &ignored) == 0;
    if (!found && interpreter_find_torch(NULL, arena, &torch->python, err) != 0)
        return -1;
    torch->binding = binding_of(session);
    torch->notes = "";
    *shadow = *session->problem;
    shadow->torch = torch;
    shadow->reference_kind = REFERENCE_TORCH;
    shadow->reference_file = baseline->library;
    shadow->reference_function = "Model";
    return reference_open_torch(shadow, session->lane, &session->region,
                                lane_torch(session->lane, session->backend->torch),
                                session->options.folder, arena, &baseline->own, err);
}

enum { SOURCE_MOST = 1 << 20 };

static void add_listed(struct session *session)
{
    const struct problem *problem = session->problem;
    for (size_t i = 0; i < problem->baseline_count; i++)
        session->baselines[session->baseline_count++] =
            (struct baseline){.name = problem->baselines[i].name,
                              .file = problem->baselines[i].file,
                              .env = problem->baselines[i].env};
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(((const struct baseline *)left)->name, ((const struct baseline *)right)->name);
}

/* baselines/NAME.SUFFIX of the problem's folder, in the order of their names. */
static void add_found(struct session *session)
{
    struct arena *arena = session->arena;
    const char *folder = arena_printf(arena, "%s/baselines", session->problem->folder);
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL &&
           session->baseline_count < BASELINES_MOST) {
        const char *dot = strrchr(entry->d_name, '.');
        if (dot == NULL || dot == entry->d_name ||
            !target_has(session->backend->target, language_of_file(dot)) ||
            language_of_file(dot)->ambiguous)
            continue;
        const char *path = arena_printf(arena, "%s/%s", folder, entry->d_name);
        if (file_is_regular(path))
            session->baselines[session->baseline_count++] = (struct baseline){
                .name = arena_strndup(arena, entry->d_name, (size_t)(dot - entry->d_name)),
                .file = path};
    }
    if (entries != NULL)
        closedir(entries);
    qsort(session->baselines + 1, session->baseline_count - 1, sizeof session->baselines[0],
          compare_names);
}

/* What the spec names may be another backend's: then the first that is of this one. And a kernel on
 * a GPU is not to shine beside a definition on the CPU, where there is another to set it against.
 */
static const char *choose_default(const struct session *session)
{
    bool kernels = session->baseline_count > 1 && session->baselines[1].library == NULL;
    if (session->backend->reference != NULL && kernels &&
        strcmp(session->problem->baseline, "reference") == 0 &&
        session->problem->reference_kind != REFERENCE_TORCH)
        return session->baselines[1].name;
    for (size_t i = 0; i < session->baseline_count; i++)
        if (strcmp(session->baselines[i].name, session->problem->baseline) == 0)
            return session->problem->baseline;
    if (session->backend->reference == NULL)
        return session->problem->baseline;
    return session->baselines[kernels ? 1 : 0].name;
}

static int no_baseline(const struct session *session, const char *wanted, struct err *err)
{
    BUF_LOCAL(names, 4096);
    for (size_t i = 0; i < session->baseline_count; i++)
        buf_addf(&names, "%s%s", i ? ", " : "", session->baselines[i].name);
    return err_set(err, ERR_USAGE, "%s has no baseline \"%s\", but %s", session->problem->name,
                   wanted, buf_text(&names));
}

int baselines_open(struct session *session, struct err *err)
{
    const struct problem *problem = session->problem;
    bool found = false, torch = problem->reference_kind == REFERENCE_TORCH;
    session->baselines[0] =
        (struct baseline){.name = torch ? "eager" : "reference", .verified = true};
    session->baseline_count = 1;
    if (session->backend->reference == NULL || torch)
        add_listed(session);
    else
        add_found(session);
    bool asked =
        session->options.baseline != NULL && strcmp(session->options.baseline, "torch") == 0;
    if (session->backend->device || asked) /* on a CPU it is not what one looks for */
        library_add(session);
    const char *wanted =
        session->options.baseline != NULL ? session->options.baseline : choose_default(session);
    if (torch && strcmp(wanted, "reference") == 0)
        wanted = "eager"; /* what every other problem calls it */
    for (size_t i = 0; i < session->baseline_count; i++)
        if (strcmp(session->baselines[i].name, wanted) == 0) {
            session->baseline = i;
            found = true;
        }
    return found ? 0 : no_baseline(session, wanted, err);
}

/* A source with a launch plan, at the first point of its tune space. */
static int parse(struct session *session, struct baseline *baseline, struct err *err)
{
    BUF_LOCAL(text, SOURCE_MOST);
    int status = file_read(baseline->file, &text, err);
    if (status == 0)
        status = candidate_parse(session->problem, baseline->file, buf_text(&text), text.length,
                                 &baseline->candidate, err);
    if (status != 0)
        return -1;
    tune_at(baseline->candidate, 0, &baseline->tune);
    if (baseline->candidate->workspace_count > 0)
        return err_set(err, ERR_USAGE, "a baseline has no workspaces");
    return 0;
}

static int open_subject(struct session *session, struct baseline *baseline, struct err *err)
{
    const struct program program = {session->problem, baseline->candidate, &baseline->tune,
                                    baseline->env};
    return session->backend->open(session->lane, &session->region, baseline->artifact, &program,
                                  false, &baseline->subject, err);
}

/* Built when first needed: most of them only the final measurement asks for. */
static int build(struct session *session, struct baseline *baseline, struct err *err)
{
    const struct problem *problem = session->problem;
    struct baseline_spec found = {.name = baseline->name, .file = baseline->file};
    const struct baseline_spec *spec = &found;
    for (size_t i = 0; i < problem->baseline_count; i++)
        if (problem->baselines[i].name == baseline->name)
            spec = &problem->baselines[i];
    if (baseline->artifact != NULL || baseline->file == NULL)
        return 0;
    if (session->backend->reference != NULL && parse(session, baseline, err) != 0)
        return -1;
    return build_baseline(session->backend, session->lane, problem, spec, BUILD_FAST,
                          session->options.folder,
                          arena_printf(session->arena, "baseline-%s", baseline->name),
                          session->arena, &baseline->artifact, err);
}

/* Which computes a baseline that is no source: one of its own, or the definition's. */
static struct reference *process_of(const struct session *session, const struct baseline *baseline)
{
    return baseline->own != NULL ? baseline->own : session->reference;
}

/* One that the reference's own child computes: its outputs do not lie in the region. */
static int verify_own(struct session *session, struct baseline *baseline, struct err *err)
{
    const struct problem *problem = session->problem;
    struct set *set = &session->pool[0];
    const struct layout *layout = &set->shape->layout;
    void *results[OUTPUTS_MAX] = {NULL};
    bool passed = true;
    struct call call;
    if (set_expect(session, set, err) != 0)
        return -1;
    set_place(session, set, &call);
    for (size_t i = 0; i < problem->output_count; i++)
        results[i] = mem_alloc(layout->outputs[i].bytes);
    int status = baseline->library != NULL
                     ? reference_compute(baseline->own, layout, &call, PRECISION_SPEC, results, err)
                     : reference_compute_baseline(process_of(session, baseline), baseline->name,
                                                  layout, &call, results, err);
    for (size_t i = 0; i < problem->output_count; i++) {
        struct mismatch mismatch = {.passed = true};
        const struct placed *placed = &layout->outputs[i];
        if (status == 0 && !set->unfit)
            set_judge(session, set, i, placed, results[i], &mismatch);
        passed = passed && mismatch.passed;
        mem_free(results[i]);
    }
    if (status != 0)
        return err_wrap(err, "baseline %s", baseline->name);
    if (!passed)
        return err_set(err, ERR_USAGE, "baseline %s: its results are wrong", baseline->name);
    baseline->verified = true;
    return 0;
}

/* Two processes may have been too many for the device's memory. */
static int verify_somewhere(struct session *session, struct baseline *baseline, struct err *err)
{
    int status = verify_own(session, baseline, err);
    if (status != 0 && baseline->own != NULL && baseline->library == NULL &&
        err->code != ERR_CANCELLED) {
        reference_close(baseline->own);
        baseline->own = NULL;
        *err = (struct err){0};
        status = verify_own(session, baseline, err);
    }
    return status;
}

static int own_ready(struct session *session, struct baseline *baseline, struct err *err)
{
    if (baseline->library != NULL && baseline->own == NULL &&
        library_open(session, baseline, err) != 0) {
        baseline->own = NULL;
        return err_wrap(err, "baseline %s", baseline->name);
    }
    if (!baseline->verified && verify_somewhere(session, baseline, err) != 0)
        return -1;
    baseline->subject = baseline->library != NULL
                            ? reference_subject(baseline->own)
                            : reference_baseline(process_of(session, baseline), baseline->name);
    if (baseline->subject == NULL)
        return err_set(err, ERR_UNSUPPORTED, "the reference has no baseline %s", baseline->name);
    baseline->subject->ops->pause(baseline->subject);
    return 0;
}

/* A baseline that is wrong is nothing to be faster than. */
static int verify(struct session *session, struct baseline *baseline, struct err *err)
{
    struct evaluation evaluation = {0};
    struct bench bench = {.session = session,
                          .arena = session->arena,
                          .evaluation = &evaluation,
                          .region = &session->region};
    struct arrangement arrangement;
    struct outcome outcome;
    struct set *set = &session->pool[0];
    int status = set_expect(session, set, err);
    for (size_t i = 1; status == 0 && set->unfit && i < session->pool_count; i++)
        status = set_expect(session, set = &session->pool[i], err);
    if (status != 0 || bench_arrange(&bench, set->shape, &arrangement, err) != 0)
        return -1;
    call_place(&bench, set, &arrangement);
    if (call_run(&bench, baseline->subject, &arrangement, true, &outcome, err) != 0) {
        baseline_close(session, baseline);
        return err_wrap(err, "baseline %s", baseline->name);
    }
    if (!call_verify(&bench, set, &arrangement))
        return err_set(err, ERR_USAGE, "baseline %s: %s", baseline->name, evaluation.reason);
    baseline->verified = true;
    baseline->verified_ns = (double)outcome.elapsed_ns;
    return 0;
}

/* --- getting ready --- */

void baselines_begin(struct session *session, bool all)
{
    for (size_t i = 1; i < session->baseline_count; i++) {
        struct baseline *baseline = &session->baselines[i];
        bool begun = baseline->subject != NULL || baseline->own != NULL || baseline->broken != NULL;
        bool source = baseline->file != NULL || baseline->library != NULL;
        if (!source && !begun && (all || i == session->baseline))
            baseline->own =
                reference_aside(session->reference, baseline->name, &session->shapes[0].layout);
    }
}

void baselines_begin_library(struct session *session)
{
    struct baseline *baseline = &session->baselines[session->baseline];
    struct err ignored; /* it is tried again where it is needed, and told then */
    if (session->backend->device && baseline->library != NULL && baseline->own == NULL &&
        library_open(session, baseline, &ignored) != 0)
        baseline->own = NULL;
}

bool baseline_pending(const struct baseline *baseline)
{
    return baseline->own != NULL && reference_pending(baseline->own);
}

void baselines_hold(struct session *session, bool held)
{
    for (size_t i = 1; i < session->baseline_count; i++)
        if (baseline_pending(&session->baselines[i])) {
            struct subject *subject = reference_subject(session->baselines[i].own);
            (held ? subject->ops->pause : subject->ops->resume)(subject);
        }
}

int baseline_await(struct session *session, struct err *err)
{
    static const struct timespec rest = {.tv_nsec = 5000000};
    struct baseline *baseline = &session->baselines[session->baseline];
    if (baseline->own == NULL || baseline->subject != NULL)
        return 0;
    uint64_t begun = timeline_begin(), started = clock_now_ns();
    while (baseline_pending(baseline) && !atomic_load(&session->cancelled))
        clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
    int status = atomic_load(&session->cancelled) ? err_set(err, ERR_CANCELLED, "cancelled")
                                                  : baseline_ready(session, baseline, err);
    double ms = (double)(clock_now_ns() - started) / 1e6;
    session->costs.spent_ms += ms; /* no candidate's */
    session->costs.once_ms += ms;
    timeline_end("open.baseline", begun);
    return status;
}

int session_await_library(struct session *session, struct err *err)
{
    return session->baselines[session->baseline].library != NULL ? baseline_await(session, err) : 0;
}

static int ready(struct session *session, struct baseline *baseline, struct err *err)
{
    if (baseline == &session->baselines[0]) {
        baseline->subject = reference_subject(session->reference);
        if (baseline->subject == NULL)
            return err_set(err, ERR_CHILD, "the reference has ended");
        baseline->subject->ops->pause(baseline->subject);
        return 0;
    }
    if (build(session, baseline, err) != 0)
        return err_wrap(err, "baseline %s", baseline->name);
    if (baseline->artifact == NULL)
        return own_ready(session, baseline, err);
    if (baseline->subject == NULL) {
        if (open_subject(session, baseline, err) != 0) {
            baseline->subject = NULL;
            return err_wrap(err, "baseline %s", baseline->name);
        }
        baseline->subject->ops->pause(baseline->subject);
        baseline->warm = false;
    }
    return baseline->verified ? 0 : verify(session, baseline, err);
}

/* What the definition's processes cannot do they are not asked for by every candidate. */
int baseline_ready(struct session *session, struct baseline *baseline, struct err *err)
{
    bool source = baseline->file != NULL || baseline->library != NULL;
    if (baseline->broken != NULL)
        return err_set(err, ERR_USAGE, "%s", baseline->broken);
    int status = ready(session, baseline, err);
    if (status != 0 && !source && err->code == ERR_USAGE)
        baseline->broken = arena_strdup(session->arena, err->message);
    return status;
}

void baseline_close(struct session *session, struct baseline *baseline)
{
    bool own = baseline == &session->baselines[0] || baseline->artifact == NULL;
    if (!own && baseline->subject != NULL)
        baseline->subject->ops->close(baseline->subject);
    baseline->subject = NULL; /* the reference's are its own */
    baseline->warm = false;
}

void baseline_free(struct session *session, struct baseline *baseline)
{
    baseline_close(session, baseline);
    reference_close(baseline->own);
    candidate_free(baseline->candidate);
}

/* A process keeps the luck of its layout for life. A fresh one for each evaluation spreads it over
 * the session as a candidate's runners do; one that is slow anyway does not notice. */
void baselines_rest(struct session *session)
{
    static const double slow_ns = 20e6;
    for (size_t i = 1; i < session->baseline_count; i++) {
        struct baseline *baseline = &session->baselines[i];
        bool device = baseline->subject != NULL && baseline->subject->device_clock &&
                      lane_is_apart(session->lane);
        if (!device && !(baseline_median(baseline) > slow_ns))
            baseline_close(session, baseline); /* a device's clock knows nothing of layouts */
    }
}

bool session_by_device(const struct session *session)
{
    const struct subject *subject = session->baselines[session->baseline].subject;
    return lane_is_apart(session->lane) && subject != NULL && subject->device_clock;
}

void baseline_remember(struct baseline *baseline, double median_ns)
{
    baseline->history[baseline->history_count++ % HISTORY_MOST] = median_ns;
}

double baseline_median(const struct baseline *baseline)
{
    size_t count = baseline->history_count < HISTORY_MOST ? baseline->history_count : HISTORY_MOST;
    return count > 0 ? stats_median(baseline->history, count) : (double)NAN;
}
