/* Where an address lies that a tool tells of. Every tensor is an allocation of its own, and calls
 * that are ready at the same time share none; of those that come one after the other the last one
 * counts. */
#include "base/mem.h"
#include "eval/cuda/sanitize/tools.h"

struct place {
    uint64_t at, bytes;
    size_t call, tensor;
};

void place_keep(struct supervisor *tool, size_t call)
{
    const struct gpu_control *control = tool->host->control;
    const struct call *own = &control->call;
    size_t count = (size_t)own->input_count + own->output_count + own->workspace_count;
    for (size_t i = 0; i < count && i < CALL_POINTERS_MAX; i++) {
        MEM_MORE(tool->places, tool->place_count, tool->place_room);
        tool->places[tool->place_count++] =
            (struct place){tool->host->report->tensors[i], control->sanitize.bytes[i], call, i};
    }
}

static uint64_t distance(const struct place *place, uint64_t address)
{
    uint64_t end = place->at + place->bytes;
    return address < place->at ? place->at - address : address < end ? 0 : address - end + 1;
}

void place_tell(const struct supervisor *tool, const struct program *program,
                const struct call *calls, uint64_t address, struct buf *text)
{
    const struct problem *problem = program->problem;
    const struct place *nearest = NULL;
    for (size_t i = 0; i < tool->place_count; i++)
        if (nearest == NULL || distance(&tool->places[i], address) <= distance(nearest, address))
            nearest = &tool->places[i];
    if (nearest == NULL || address == 0)
        return;
    buf_addf(text, " %s %s at ", distance(nearest, address) == 0 ? "in" : "beside",
             candidate_tensor(problem, program->candidate, nearest->tensor)->name);
    for (size_t i = 0; i < problem->dim_count; i++)
        buf_addf(text, "%s%s=%lld", i > 0 ? ", " : "", problem->dims[i].name,
                 (long long)calls[nearest->call].dims[i]);
}
