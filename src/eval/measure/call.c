/* eval/measure/call: one call that is checked. Before it: inputs in place, outputs and workspaces
 * poisoned, red zones filled, caches empty. The moment it is done: some output elements are read,
 * then the subject is stopped. Warm-up, check and timed calls all come through here and look alike
 * from the subject's side. */
#include "base/clock.h"
#include "eval/data/noise.h"
#include "eval/data/timeline.h"
#include "eval/measure/accuracy.h"
#include "eval/measure/fence.h"
#include "eval/measure/guard.h"
#include "eval/measure/low_bits.h"
#include "eval/measure/session_private.h"
#include "eval/problem/torch.h"
#include "eval/sets/excuse.h"
#include "eval/sets/view.h"

#include <string.h>

enum { TRUSTED_TIMEOUT_MS = 120000 }; /* a definition may be as slow as it likes */

/* --- where --- */

/* None in a quarter of the calls: tensors begin where large pages do. Else rather a small one: who
 * reads on behind an input reads as far as a vector, or as a row. */
static size_t draw_shift(struct random *random)
{
    enum { EXACT = 4, SCALES = 4 };
    size_t places = PAGE_BYTES / layout_alignment();
    if (random_below(random, EXACT) == 0)
        return 0;
    return layout_alignment() * (random_below(random, places) >> random_below(random, SCALES));
}

int bench_arrange(struct bench *bench, const struct shape *shape, struct arrangement *arrangement,
                  struct err *err)
{
    struct session *session = bench->session;
    const struct measure_request *request = bench->request;
    /* Half of the calls find new bytes where the call before found its own. */
    if (!bench->follows && random_below(&session->random, 2) == 0) {
        bench->slot = random_below(&session->random, session->slots);
        bench->shift = draw_shift(&session->random);
        bench->place_seed = random_seed();
    }
    if (bench->slot_forced)
        bench->slot = bench->slot_wanted;
    if (bench->one_slot)
        bench->slot = 0;
    bench->slot %= session->slots;
    if (layout_make(session->problem, &shape->dims, request != NULL ? request->candidate : NULL,
                    request != NULL ? request->tune : NULL, bench->shift, &arrangement->layout,
                    err) != 0)
        return -1;
    guard_arrange(bench, &arrangement->layout);
    if (arrangement->layout.inputs_bytes > session->slot_bytes ||
        arrangement->layout.outputs_bytes > bench->region->outputs_bytes)
        return err_set(err, ERR_LIMIT,
                       "tensors and workspaces need %zu MiB, which is more than fit",
                       arrangement->layout.outputs_bytes >> 20);
    arrangement->slot_offset = bench->slot * session->slot_bytes;
    call_make(&arrangement->layout, arrangement->slot_offset, session->options.call_timeout_ms,
              &arrangement->call);
    arrangement->call.place_seed = bench->place_seed;
    return 0;
}

/* --- before --- */

void call_place(struct bench *bench, const struct set *set, const struct arrangement *arrangement)
{
    struct session *session = bench->session;
    unsigned char pattern[GUARD_BYTES];
    const struct layout *layout = &arrangement->layout;
    struct fence fence = {.base = session->region.inputs + arrangement->slot_offset,
                          .pattern = pattern};
    size_t cursor = 0;
    uint64_t begun = timeline_begin();
    fence_pattern(pattern); /* whoever reads past an input gets something new each time */
    if (layout->guard != GUARD_NONE) {
        guard_visit(layout, fence_fill, &fence);
    } else {
        fence_gaps(layout->inputs, layout->input_count, &cursor, fence_fill, &fence);
        fence_fill(&fence, cursor, layout->inputs_bytes);
    }
    guard_fill(bench, layout, fence.base);
    for (size_t i = 0; i < layout->input_count; i++)
        set_put(session, set, i, fence.base + layout->inputs[i].offset);
    session_let_go(session, set);
    timeline_end("call.place", begun);
}

static void visit_outputs(const struct layout *layout,
                          void (*visit)(void *context, size_t from, size_t to), struct fence *fence)
{
    size_t cursor = 0;
    fence_gaps(layout->outputs, layout->output_count, &cursor, visit, fence);
    fence_gaps(layout->workspaces, layout->workspace_count, &cursor, visit, fence);
    visit(fence, cursor, fence->end);
}

static void poison(struct bench *bench, const struct layout *layout)
{
    struct session *session = bench->session;
    unsigned char *base = bench->outputs;
    const struct problem *problem = session->problem;
    struct fence fence = {.base = base, .end = bench->outputs_fenced, .pattern = bench->guard};
    fence_pattern(bench->guard);
    visit_outputs(layout, fence_fill, &fence);
    for (size_t i = 0; i < layout->output_count; i++)
        draw_poison(random_seed(), problem->outputs[i].dtype, layout->outputs[i].elements,
                    base + layout->outputs[i].offset);
    for (size_t i = 0; i < layout->workspace_count; i++)
        draw_poison(random_seed(), bench->request->candidate->workspaces[i].dtype,
                    layout->workspaces[i].elements, base + layout->workspaces[i].offset);
}

static enum dtype dtype_of(const struct bench *bench, size_t index)
{
    const struct problem *problem = bench->session->problem;
    return index < problem->output_count
               ? problem->outputs[index].dtype
               : bench->request->candidate->workspaces[index - problem->output_count].dtype;
}

/* Whose numbers mean nothing by their places: no index, no table or matrix with a structure. */
static bool is_free(const struct problem *problem, size_t input)
{
    return dtype_is_float(problem->inputs[input].dtype) &&
           (problem->torch == NULL || problem->torch->inputs[input].structure == STRUCTURE_FREE);
}

/* For a subject with memory of its own, which poisons that by itself at the rate of its memory: the
 * red zones as ever. In our memory only as much as to see that results came back at all: a page at
 * each end of every output, and the samples of outputs. */
static void poison_there(struct bench *bench, const struct layout *layout, struct call *call)
{
    struct session *session = bench->session;
    struct fence fence = {
        .base = bench->outputs, .end = bench->outputs_fenced, .pattern = bench->guard};
    fence_pattern(bench->guard);
    visit_outputs(layout, fence_fill, &fence);
    call->poison_seed = random_seed() | 1;
    for (size_t i = 0; i < layout->input_count; i++)
        call->poison[i].bytes = is_free(session->problem, i) ? layout->inputs[i].bytes : 0;
    for (size_t i = 0; i < layout->output_count + layout->workspace_count; i++) {
        const struct placed *placed = i < layout->output_count
                                          ? &layout->outputs[i]
                                          : &layout->workspaces[i - layout->output_count];
        size_t page = placed->bytes < PAGE_BYTES ? placed->bytes : PAGE_BYTES;
        struct call_poison *poison = &call->poison[layout->input_count + i];
        poison->bytes = placed->bytes;
        draw_poison_bits(dtype_of(bench, i), &poison->bits);
        if (i >= layout->output_count)
            continue;
        memset(bench->outputs + placed->offset, 0xff, page);
        memset(bench->outputs + placed->offset + placed->bytes - page, 0xff, page);
    }
    for (size_t i = 0; i < bench->output_sample_count; i++)
        memset((void *)(uintptr_t)bench->output_samples[i].at, 0xff,
               bench->output_samples[i].bytes);
}

static void flush(const struct bench *bench, const struct arrangement *arrangement)
{
    const struct session *session = bench->session;
    const struct layout *layout = &arrangement->layout;
    int64_t cache = 0;
    struct names facts = session->lane->facts;
    if (!expr_lookup_names(&facts, "l3_bytes", &cache) || cache <= 0)
        cache = INT64_C(64) << 20;
    for (size_t i = 0; i < layout->input_count; i++)
        flush_bytes(session->region.inputs + arrangement->slot_offset + layout->inputs[i].offset,
                    layout->inputs[i].bytes, (size_t)cache);
    flush_bytes(bench->outputs, layout->outputs_bytes, (size_t)cache);
}

/* --- the call, and the moment after it --- */

static uint64_t load(const struct output_sample *sample)
{
    uint64_t bits = 0;
    memcpy(&bits, (const void *)sample->at, sample->bytes);
    return bits;
}

/* One in four lies in the last page of an output, where a loop ends. */
static void choose_output_samples(struct bench *bench, const struct layout *layout)
{
    struct session *session = bench->session;
    const struct problem *problem = session->problem;
    bench->output_sample_count = 0;
    for (size_t i = 0; i < OUTPUT_SAMPLES; i++) {
        size_t output = (size_t)random_below(&session->random, layout->output_count);
        const struct placed *placed = &layout->outputs[output];
        size_t bytes = dtype_bytes(problem->outputs[output].dtype);
        size_t tail = PAGE_BYTES / bytes;
        size_t from = i % 4 == 0 && placed->elements > tail ? placed->elements - tail : 0;
        if (placed->elements == 0)
            continue;
        size_t element = from + (size_t)random_below(&session->random, placed->elements - from);
        bench->output_samples[bench->output_sample_count++] = (struct output_sample){
            .at = bench->outputs + placed->offset + element * bytes, .bytes = (unsigned)bytes};
    }
}

static bool is_disturbed(const struct bench *bench, const struct outcome *outcome)
{
    enum { PART = 50, LEAST_NS = 15000 };
    uint64_t cores = bench->session->lane->core_count > 0 ? bench->session->lane->core_count : 1;
    uint64_t most = outcome->elapsed_ns / PART * cores;
    return outcome->delay_ns > (most > LEAST_NS * cores ? most : LEAST_NS * cores);
}

static void tell_delay(const struct bench *bench, const struct subject *subject,
                       const struct noise *before, const struct noise *after,
                       struct outcome *outcome)
{
    const size_t cores = bench->session->lane->core_count;
    uint64_t elapsed_ns = outcome->elapsed_ns, most = elapsed_ns;
    if (subject->device_clock) {
        outcome->delay_ns = subject->waited_ns;
    } else {
        outcome->delay_ns = noise_between(before, after, elapsed_ns, cores);
        most = noise_most(before, after, elapsed_ns, cores);
    }
    outcome->disturbed = is_disturbed(bench, outcome);
    outcome->delay_ns = outcome->delay_ns < most ? outcome->delay_ns : most;
}

static size_t outputs_end(const struct layout *layout)
{
    const struct placed *last = &layout->outputs[layout->output_count - 1];
    return last->offset + last->bytes + REDZONE_BYTES;
}

/* A baseline has no workspaces; its inputs and outputs lie where the candidate's do. */
static void strip_workspaces(struct arrangement *arrangement)
{
    struct layout *layout = &arrangement->layout;
    size_t end = outputs_end(layout) + PAGE_BYTES - 1;
    layout->outputs_bytes = end / PAGE_BYTES * PAGE_BYTES;
    layout->workspace_count = 0;
    arrangement->call.workspace_count = 0;
    arrangement->call.outputs_bytes = layout->outputs_bytes;
}

/* Tensors of a small shape leave room in the region, which a store may reach over the red zone.
 * (A device's results come back into it.) */
static size_t fenced_end(const struct bench *bench, const struct layout *layout, bool in_region)
{
    enum { ROOM_BYTES = 1 << 19 };
    size_t end = layout->outputs_bytes + ROOM_BYTES;
    if (!in_region || bench->stage != STAGE_CHECK)
        return layout->outputs_bytes;
    return end < bench->region->outputs_bytes ? end : bench->region->outputs_bytes;
}

int call_run(struct bench *bench, struct subject *subject, const struct arrangement *arrangement,
             bool cold, struct outcome *outcome, struct err *err)
{
    struct noise before, after;
    struct arrangement own = *arrangement;
    bool candidate =
        bench->request != NULL && (subject == bench->subject || subject == bench->twin);
    if (!candidate) {
        strip_workspaces(&own);
        uint64_t most_ms = bench->session->baseline_most_ms;
        own.call.timeout_ms = most_ms > 0 ? most_ms : TRUSTED_TIMEOUT_MS;
    }
    bench->outputs = candidate ? bench->region->outputs : bench->session->region.outputs;
    bench->outputs_fenced = fenced_end(bench, &own.layout, candidate && !subject->device_clock);
    bench->outputs_at = own.layout.outputs[0].offset;
    bench->outputs_end = outputs_end(&own.layout);
    *outcome = (struct outcome){0};
    uint64_t begun = timeline_begin();
    bench->output_sample_count = 0;
    if (!subject->own_results) {
        choose_output_samples(bench, &own.layout);
        if (subject->device_clock)
            poison_there(bench, &own.layout, &own.call);
        else
            poison(bench, &own.layout);
        for (size_t i = 0; i < bench->output_sample_count; i++)
            bench->output_samples[i].early = load(&bench->output_samples[i]);
        timeline_end("call.poison", begun);
    }
    own.call.cold = cold;
    own.call.timed = bench->stage == STAGE_TIME || bench->clocked;
    own.call.stays = bench->stays;
    if (subject->device_clock)
        bench_tell_device(bench, candidate, &own.call);
    if (cold && !subject->device_clock) /* else its own caches, which it empties itself */
        flush(bench, &own);
    begun = timeline_begin();
    if (!subject->device_clock)
        noise_read(subject->pid, &before);
    if (!subject->wakes_itself)
        subject->ops->resume(subject);
    int status = subject_call(subject, &own.call, &outcome->elapsed_ns, err);
    bench->wrote_around = candidate && status == 0 && subject->wrote_around;
    for (size_t i = 0; status == 0 && i < bench->output_sample_count; i++)
        bench->output_samples[i].early = load(&bench->output_samples[i]);
    timeline_end(candidate ? "call.candidate" : "call.baseline", begun);
    if (status != 0)
        return -1;
    begun = timeline_begin();
    subject->ops->pause(subject);
    if (!subject->device_clock)
        noise_read(subject->pid, &after);
    timeline_end("call.pause", begun);
    tell_delay(bench, subject, &before, &after, outcome);
    /* A candidate's process is looked at after each call (left.c), and its next call starts sooner
     * for it. So that it is not ahead of its like, every other one is looked at, too. */
    if (subject != bench->subject && subject->remains != NULL)
        (void)subject->remains(subject);
    return 0;
}

/* --- after --- */

struct nearest { /* of the tensors, to where something was written */
    const char *name, *side;
    size_t distance;
};

static void compare_nearest(const struct placed *placed, const char *name, size_t offset,
                            struct nearest *nearest)
{
    size_t end = placed->offset + placed->bytes;
    bool before = offset < placed->offset;
    size_t distance = before ? placed->offset - offset : offset >= end ? offset - end + 1 : 0;
    if (distance < nearest->distance)
        *nearest = (struct nearest){name, before ? "before the start" : "after the end", distance};
}

static struct nearest nearest_tensor(const struct bench *bench, const struct layout *layout,
                                     size_t offset)
{
    struct nearest nearest = {"the outputs", "beside", SIZE_MAX};
    for (size_t i = 0; i < layout->output_count; i++)
        compare_nearest(&layout->outputs[i], bench->session->problem->outputs[i].name, offset,
                        &nearest);
    for (size_t i = 0; i < layout->workspace_count; i++)
        compare_nearest(&layout->workspaces[i], bench->request->candidate->workspaces[i].name,
                        offset, &nearest);
    return nearest;
}

/* The shape is told, too: who takes a dim for a constant writes right at the main one. */
static void reject_write(struct bench *bench, const struct layout *layout,
                         const struct nearest *nearest)
{
    BUF_LOCAL(text, 400);
    buf_addf(&text, "wrote out of bounds, %s of %s", nearest->side, nearest->name);
    for (size_t i = 0; i < layout->dims.count; i++)
        buf_addf(&text, "%s%s=%lld", i > 0 ? ", " : ", at ", layout->dims.name[i],
                 (long long)layout->dims.number[i]);
    bench_reject(bench, VERDICT_REJECTED, arena_strdup(bench->arena, buf_text(&text)), "");
}

static bool fences_stand(struct bench *bench, const struct layout *layout)
{
    struct fence fence = {.base = bench->outputs,
                          .end = bench->outputs_fenced,
                          .pattern = bench->guard,
                          .intact = true};
    visit_outputs(layout, fence_check, &fence);
    struct nearest nearest = {0};
    if (!fence.intact)
        nearest = nearest_tensor(bench, layout, fence.broken);
    else if (bench->wrote_around) /* a device has more around a tensor than the region has */
        nearest = (struct nearest){"an output", "far beside the memory", 0};
    if (nearest.name != NULL)
        reject_write(bench, layout, &nearest);
    return fence.intact && !bench->wrote_around;
}

static bool output_samples_stay(struct bench *bench)
{
    for (size_t i = 0; i < bench->output_sample_count; i++)
        if (load(&bench->output_samples[i]) != bench->output_samples[i].early) {
            bench_reject(bench, VERDICT_REJECTED,
                         "an output changed after the call had ended: work was left behind", "");
            return false;
        }
    return true;
}

/* What no source is to blame for: an adapter that gives up long loops and goes on behind them. */
static void doubt_device(const struct bench *bench, const struct set *set, struct buf *text)
{
    int64_t rounds = 0;
    struct names facts = bench->session->lane->facts;
    if (!expr_lookup_names(&facts, "loop_rounds", &rounds))
        return;
    for (size_t i = 0; i < set->shape->dims.count; i++)
        if (set->shape->dims.number[i] > rounds) {
            buf_addf(text, "; this device ends each loop after %lld rounds", (long long)rounds);
            return;
        }
}

static void describe_wrong(struct bench *bench, const struct set *set, size_t output,
                           const struct placed *placed, const struct mismatch *mismatch)
{
    BUF_LOCAL(text, 400);
    BUF_LOCAL(dims, 200);
    for (size_t i = 0; i < set->shape->dims.count; i++)
        buf_addf(&dims, "%s%s=%lld", i > 0 ? ", " : "", set->shape->dims.name[i],
                 (long long)set->shape->dims.number[i]);
    buf_add_text(&text, "wrong result: ");
    mismatch_describe(&bench->session->problem->outputs[output], placed->extents, mismatch, &text);
    const char *details = arena_printf(
        bench->arena,
        "%s\nshape: %s\ninputs: %s\nelements wrong: %zu of %zu\nerror over allowed error: %.3g "
        "(worst element), %.3g (relative L2)\n",
        buf_text(&text), buf_text(&dims), distribution_name(set_distribution(set)),
        mismatch->bad_count, placed->elements, mismatch->worst_ratio, mismatch->norm_ratio);
    buf_addf(&text, " at %s, %s inputs", buf_text(&dims), distribution_name(set_distribution(set)));
    doubt_device(bench, set, &text);
    bench->accuracy.reason = arena_strdup(bench->arena, buf_text(&text));
    bench->accuracy.details = details;
}

/* False: rejected. What is in doubt is decided later, by more sets. */
static bool verify_output(struct bench *bench, const struct set *set, size_t output,
                          const struct arrangement *arrangement, double *ratio)
{
    const struct placed *placed = &arrangement->layout.outputs[output];
    const void *got = bench->outputs + placed->offset;
    struct mismatch mismatch;
    set_judge(bench->session, set, output, placed, got, &mismatch);
    *ratio = mismatch_ratio(&mismatch);
    bool excused = set_excused(set);
    if (!mismatch.passed && set->view == NULL &&
        set_may_tie(&set->bounds[output], placed, &mismatch)) {
        excused = session_excuses(bench->session, set, output, got);
        call_place(bench, set, arrangement);
    }
    if (excused)
        bench_note(bench, "%s that hang on a tie were left out, at %s inputs",
                   set_bound(set, output)->exact_equality ? "integers" : "rows",
                   distribution_name(set_distribution(set)));
    if (excused && set->view == NULL)
        *ratio = 0.0;
    if (mismatch.passed || excused)
        return true;
    describe_wrong(bench, set, output, placed, &mismatch);
    if (bench->request != NULL && accuracy_is_doubtful(set_bound(set, output), *ratio))
        return true;
    bench_reject(bench, VERDICT_REJECTED, bench->accuracy.reason, bench->accuracy.details);
    return false;
}

bool call_verify(struct bench *bench, const struct set *set, const struct arrangement *arrangement)
{
    const struct layout *layout = &arrangement->layout;
    double largest = 0.0, honest = 0.0;
    bool right = true;
    bench->evaluation->checks_total++;
    uint64_t begun = timeline_begin();
    if (!fences_stand(bench, layout) || !output_samples_stay(bench) || !left_nothing(bench))
        return false;
    for (size_t i = 0; i < layout->output_count && right; i++) {
        double ratio;
        right = verify_output(bench, set, i, arrangement, &ratio);
        if (i == 0 || ratio > largest) {
            largest = ratio;
            honest = set_bound(set, i)->honest;
        }
    }
    accuracy_see(bench, set, largest, honest);
    if (right)
        low_bits_keep(bench, set, layout);
    bench->evaluation->checks_passed += right;
    timeline_end("call.verify", begun);
    return right;
}
