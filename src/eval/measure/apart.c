/* eval/measure/apart: work that is left to threads that nobody waits for. In a held call they run
 * only while the caller waits; in a watched one one of them is stopped in the middle of its work,
 * so that a caller which looks whether it has begun sees that it has. docs/threat-model.md */
#include "eval/measure/session_private.h"

#include <string.h>

/* A thread's turn has ended: what has changed since the last one's is its own. */
static void see_written(void *context, unsigned thread)
{
    struct bench *bench = context;
    struct apart *apart = &bench->apart;
    for (size_t i = 0; i < bench->output_sample_count; i++) {
        const struct output_sample *sample = &bench->output_samples[i];
        uint64_t bits = 0;
        memcpy(&bits, sample->at, sample->bytes);
        if (bits == sample->early || apart->by[i] != 0)
            continue;
        apart->by[i] = thread + 1;
        apart->written[i] = (struct watched){
            (uint64_t)(sample->at - bench->outputs) - bench->outputs_at, sample->bytes, false};
        apart->most = thread + 1 > apart->most ? thread + 1 : apart->most;
    }
}

/* One in four lies in the last page of an output, where a loop ends. */
static struct watched any_element(struct bench *bench, const struct layout *layout, size_t turn)
{
    struct random *random = &bench->session->random;
    const struct placed *placed = &layout->outputs[random_below(random, layout->output_count)];
    if (placed->elements == 0)
        return (struct watched){placed->offset, 1, false};
    unsigned bytes = (unsigned)(placed->bytes / placed->elements);
    size_t tail = PAGE_BYTES / bytes;
    size_t from = turn == 0 && placed->elements > tail ? placed->elements - tail : 0;
    size_t element = from + random_below(random, placed->elements - from);
    return (struct watched){placed->offset + element * bytes, bytes, false};
}

/* Who computes reads: also one whose results another thread puts where they belong. */
static struct watched any_input(struct bench *bench, const struct layout *layout, size_t input)
{
    struct random *random = &bench->session->random;
    const struct placed *placed = &layout->inputs[input % layout->input_count];
    uint64_t from = bench->slot * bench->session->slot_bytes + placed->offset +
                    layout->alias_shift[input % layout->input_count];
    if (placed->elements == 0)
        return (struct watched){from, 1, true};
    unsigned bytes = (unsigned)(placed->bytes / placed->elements);
    return (struct watched){from + random_below(random, placed->elements) * bytes, bytes, true};
}

/* One that this thread (1: the caller) has written, or the last of some, which is nearer to its
 * end. False: none. */
static bool written_by(struct bench *bench, const struct layout *layout, unsigned thread,
                       size_t draws, struct watched *item)
{
    const struct apart *apart = &bench->apart;
    struct watched last = {0};
    for (; draws > 0; draws--) {
        size_t seen = 0, at = 0;
        for (size_t i = 0; i < OUTPUT_SAMPLES; i++)
            if (apart->by[i] == thread && random_below(&bench->session->random, ++seen) == 0)
                at = i;
        if (seen == 0)
            return false;
        if (apart->written[at].offset >= last.offset)
            last = apart->written[at];
    }
    last.offset += layout->outputs[0].offset;
    *item = last;
    return true;
}

/* Of one thread besides the caller, whichever; its number, or 0 where nothing is known. */
static unsigned choose_target(struct bench *bench, const struct layout *layout)
{
    enum { LAST_OF = 4 };
    struct watch *watch = &bench->apart.watch;
    struct random *random = &bench->session->random;
    size_t draws = random_below(random, 2) == 0 ? 1 : LAST_OF;
    unsigned others = bench->apart.most > 1 ? bench->apart.most - 1 : 0;
    unsigned first = others > 0 ? (unsigned)random_below(random, others) : 0;
    for (unsigned i = 0; i < others; i++) {
        unsigned thread = 2 + (first + i) % others;
        if (written_by(bench, layout, thread, draws, &watch->items[0])) {
            watch->targets = watch->count = 1;
            return thread;
        }
    }
    return 0;
}

/* What others write before, the caller first: they wait until the target is written. A caller that
 * never waits is not told of, and writes most of all there is. */
static void choose_before(struct bench *bench, const struct layout *layout, unsigned target)
{
    struct apart *apart = &bench->apart;
    struct watch *watch = &apart->watch;
    for (unsigned i = 1; i <= apart->most && watch->count < WATCH_MOST; i++)
        if (i != target && written_by(bench, layout, i, 1, &watch->items[watch->count]))
            watch->count++;
    if (apart->most == 0)
        while (watch->count < WATCH_MOST) {
            watch->items[watch->count] = any_element(bench, layout, 1);
            watch->count++;
        }
}

static void choose_late(struct bench *bench, const struct layout *layout)
{
    struct watch *watch = &bench->apart.watch;
    struct random *random = &bench->session->random;
    watch->late = true;
    watch->outputs = bench->region->outputs;
    watch->one = random_below(random, 2) == 0 ? 0 : 1 + (unsigned)random_below(random, 1 << 20);
    if (random_below(random, 2) != 0 && choose_target(bench, layout) != 0)
        return;
    uint64_t at_once = 1 + random_below(random, 1 + bench->subject->threads);
    watch->at_ns = 1 + random_below(random, watch->usual_ns * at_once + 1);
}

/* By what is read, of two inputs; or, where nothing is known, by any output. */
static void choose_any(struct bench *bench, const struct layout *layout)
{
    struct watch *watch = &bench->apart.watch;
    struct random *random = &bench->session->random;
    size_t first = layout->input_count > 0 ? random_below(random, layout->input_count) : 0;
    for (size_t i = 0; i < 2 && i < layout->input_count; i++)
        watch->items[watch->targets++] = any_input(bench, layout, first + i);
    if (bench->apart.most < 2)
        watch->items[watch->targets++] = any_element(bench, layout, random_below(random, 2));
    watch->count = watch->targets;
}

/* Three in eight late; one in three of the others by what is read, else by what is written, as far
 * as that is known. */
static void choose_watched(struct bench *bench, const struct layout *layout)
{
    struct watch *watch = &bench->apart.watch;
    struct random *random = &bench->session->random;
    unsigned target = 0;
    *watch = (struct watch){.usual_ns = (uint64_t)bench->estimate_ns};
    if (random_below(random, 8) < 3) {
        choose_late(bench, layout);
        return;
    }
    if (random_below(random, 3) > 0)
        target = choose_target(bench, layout);
    if (target == 0)
        choose_any(bench, layout);
    if (random_below(random, 4) > 0) /* who reads a clock all the time feels that he is stopped */
        choose_before(bench, layout, target);
}

void apart_tell(struct bench *bench, const struct layout *layout)
{
    struct subject *subject = bench->subject;
    struct apart *apart = &bench->apart;
    if (apart->looks) {
        memset(apart->by, 0, sizeof apart->by);
        apart->most = 0;
    }
    subject->ran = apart->looks ? see_written : NULL;
    subject->ran_context = bench;
    if (bench->halted)
        choose_watched(bench, layout);
    subject->watch = bench->halted ? &apart->watch : NULL;
}
