/* eval/sets/region: how much shared memory a session has. A runner touches all of its
 * region when it starts, so the usual one is no larger than the problem; a candidate with large
 * workspaces gets one with the same inputs and more behind them. */
#include "base/mem.h"
#include "base/quota.h"
#include "eval/sets/session.h"

#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static const size_t headroom_most = 8 * MIB;
static const size_t roomy_most = (size_t)4096 * MIB;
static const size_t workspace_floor = 64 * MIB;
enum { WORKSPACE_TIMES = 16 }; /* of the problem's own tensors */

static size_t page_up(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* The hidden shapes of problem_draw_dims() have at most 2^20 elements in all, where they can. */
static size_t hidden_bytes(size_t tensors)
{
    return 8 * MIB + (tensors + 1) * (REDZONE_BYTES + layout_alignment());
}

const struct shape *session_shape_at(const struct session *session, size_t index)
{
    if (index < session->shape_total)
        return &session->shapes[index];
    index -= session->shape_total;
    if (index < session->large_shape_count)
        return &session->large_shapes[index];
    index -= session->large_shape_count;
    return index < FORM_SHAPES ? &session->form_shapes[index] : NULL;
}

/* The most that each input has, of the hidden shapes, too, where that is not far too much. */
static size_t most_of_inputs(const struct session *session, size_t *most)
{
    enum { FEW_INPUTS = 4, HIDDEN_ELEMENTS = 1 << 20 };
    const struct problem *problem = session->problem;
    size_t sum = 0;
    for (size_t i = 0; i < problem->input_count; i++) {
        most[i] = problem->input_count > FEW_INPUTS
                      ? 0
                      : HIDDEN_ELEMENTS * dtype_bytes(problem->inputs[i].dtype);
        const struct shape *shape;
        for (size_t k = 0; (shape = session_shape_at(session, k)) != NULL; k++) {
            size_t bytes = shape->layout.inputs[i].bytes;
            most[i] = bytes > most[i] ? bytes : most[i];
        }
        sum += page_up(most[i]) + PAGE_BYTES; /* of a second slot: ALIAS_SLOTS */
    }
    return sum;
}

/* As much again is what is expected, and what the definition and the baseline take. Who asks for
 * more is told, before the kernel ends whichever of the user's processes it likes. */
static int check_memory(double bytes, struct err *err)
{
    double most = (double)quota_memory() / 2;
    return bytes <= most ? 0
                         : err_set(err, ERR_ENVIRONMENT,
                                   "outputs and two sets of inputs take %.0f MB at the largest "
                                   "shape, half of this machine's memory is %.0f MB",
                                   bytes / 1e6, most / 1e6);
}

int session_open_region(struct session *session, struct err *err)
{
    size_t most[INPUTS_MAX], main[INPUTS_MAX], each = most_of_inputs(session, most);
    size_t inputs = hidden_bytes(session->problem->input_count);
    size_t outputs = hidden_bytes(session->problem->output_count);
    inputs = each > inputs ? each : inputs;
    const struct shape *shape;
    for (size_t i = 0; (shape = session_shape_at(session, i)) != NULL; i++) {
        const struct layout *layout = &shape->layout;
        inputs = layout->inputs_bytes > inputs ? layout->inputs_bytes : inputs;
        outputs = layout->outputs_bytes > outputs ? layout->outputs_bytes : outputs;
    }
    /* One page more: a shift moves everything by up to that. */
    session->slot_bytes = page_up(inputs) + PAGE_BYTES;
    size_t headroom = inputs + outputs < headroom_most ? inputs + outputs : headroom_most;
    size_t inputs_bytes = session->slots * session->slot_bytes;
    size_t outputs_bytes = page_up(outputs + headroom) + PAGE_BYTES;
    double bytes = (double)inputs_bytes + (double)outputs_bytes;
    bool asked = session->problem->torch != NULL || session->sliced; /* memory.c */
    if ((!asked && check_memory(bytes, err) != 0) ||
        region_open(inputs_bytes, outputs_bytes, &session->region, err) != 0)
        return -1;
    static_assert((int)SLOTS == (int)ALIAS_SLOTS, "each slot has aliases");
    for (size_t i = 0; i < session->problem->input_count; i++)
        main[i] = session->shapes[0].layout.inputs[i].bytes;
    region_alias(&session->region, most, main, session->problem->input_count, session->slots,
                 session->slot_bytes);
    return 0;
}

static void drop_roomy(struct session *session)
{
    if (session->roomy.outputs == NULL)
        return;
    munmap(session->roomy.outputs, session->roomy.outputs_bytes);
    close(session->roomy.outputs_fd);
    session->roomy = (struct region){0};
}

/* Sizes are powers of two and only grow, so that no spare runner of an earlier one seems to fit. */
static int make_roomy(struct session *session, size_t outputs_bytes, struct err *err)
{
    struct region own;
    size_t bytes = 2 * headroom_most;
    size_t own_bytes = session->slot_bytes + session->region.outputs_bytes;
    size_t most = own_bytes * WORKSPACE_TIMES + workspace_floor;
    most = most < roomy_most ? most : roomy_most;
    if (outputs_bytes > most)
        return err_set(
            err, ERR_LIMIT,
            "outputs and workspaces need %zu MiB, expected at most %zu: %zu, and %d times "
            "what the problem's tensors take",
            outputs_bytes / MIB, most / MIB, workspace_floor / MIB, WORKSPACE_TIMES);
    while (bytes < outputs_bytes + PAGE_BYTES || bytes <= session->roomy.outputs_bytes)
        bytes *= 2;
    if (region_open(1, bytes, &own, err) != 0)
        return -1;
    munmap(own.inputs, own.inputs_bytes);
    close(own.inputs_fd);
    close(own.inputs_read_fd);
    drop_roomy(session);
    session->roomy = session->region;
    session->roomy.outputs = own.outputs;
    session->roomy.outputs_fd = own.outputs_fd;
    session->roomy.outputs_bytes = own.outputs_bytes;
    return 0;
}

int session_region_for(struct session *session, size_t outputs_bytes, const struct region **region,
                       struct err *err)
{
    *region = &session->region;
    if (outputs_bytes + PAGE_BYTES <= session->region.outputs_bytes)
        return 0;
    if ((session->roomy.outputs == NULL ||
         outputs_bytes + PAGE_BYTES > session->roomy.outputs_bytes) &&
        make_roomy(session, outputs_bytes, err) != 0)
        return -1;
    *region = &session->roomy;
    return 0;
}

void *session_scratch(struct session *session, size_t index, size_t bytes)
{
    if (session->scratch_bytes[index] < bytes) {
        mem_free(session->scratch[index]);
        session->scratch[index] = parallel_alloc(bytes);
        session->scratch_bytes[index] = bytes;
    }
    return session->scratch[index];
}

void session_close_region(struct session *session)
{
    drop_roomy(session);
    if (session->region.inputs != NULL)
        region_close(&session->region);
    if (session->sanitized.inputs != NULL)
        region_close(&session->sanitized);
    for (size_t i = 0; i < SCRATCHES; i++)
        mem_free(session->scratch[i]);
}
