/* eval/session_region: how much shared memory a session has. A runner touches all of its region
 * when it starts, so the usual one is no larger than the problem; a candidate with large workspaces
 * gets one with the same inputs and more behind them. */
#include "eval/session_private.h"

#include <sys/mman.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* The hidden shapes of problem_draw_dims() have at most 2^20 elements in all. */
static const size_t hidden_bytes = 8 * MIB + (size_t)16 * 2 * REDZONE_BYTES;
static const size_t headroom_most = 8 * MIB;
static const size_t roomy_most = (size_t)4096 * MIB;

static size_t page_up(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

int session_open_region(struct session *session, struct err *err)
{
    size_t inputs = hidden_bytes, outputs = hidden_bytes;
    for (size_t i = 0; i < session->shape_total; i++) {
        const struct layout *layout = &session->shapes[i].layout;
        inputs = layout->inputs_bytes > inputs ? layout->inputs_bytes : inputs;
        outputs = layout->outputs_bytes > outputs ? layout->outputs_bytes : outputs;
    }
    /* One page more: a shift moves everything by up to that; and one for each guarded input. */
    session->slot_bytes = page_up(inputs) + PAGE_BYTES * (1 + session->problem->input_count);
    size_t headroom = inputs + outputs < headroom_most ? inputs + outputs : headroom_most;
    return region_open(SLOTS * session->slot_bytes, page_up(outputs + headroom) + PAGE_BYTES,
                       &session->region, err);
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
    while (bytes < outputs_bytes + PAGE_BYTES || bytes <= session->roomy.outputs_bytes)
        bytes *= 2;
    if (bytes > roomy_most)
        return err_set(err, ERR_LIMIT, "tensors and workspaces need %zu MiB, expected at most %zu",
                       outputs_bytes / MIB, roomy_most / MIB);
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

void session_close_region(struct session *session)
{
    drop_roomy(session);
    if (session->region.inputs != NULL)
        region_close(&session->region);
}
