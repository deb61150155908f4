/* eval/measure/apart: work that is left to threads that nobody waits for. In a held call they run
 * only while the caller waits; in a watched one they are stopped as they write an output, so that
 * a caller which looks whether they have begun sees that they have. docs/threat-model.md */
#include "eval/measure/session_private.h"

#include <string.h>

/* What the caller has not written when it first waits is what others are to write. */
static void see_left(void *context)
{
    struct bench *bench = context;
    struct apart *apart = &bench->apart;
    apart->count = 0;
    for (size_t i = 0; i < bench->output_sample_count; i++) {
        const struct output_sample *sample = &bench->output_samples[i];
        uint64_t bits = 0;
        memcpy(&bits, sample->at, sample->bytes);
        if (bits == sample->early && apart->count < sizeof apart->left / sizeof apart->left[0])
            apart->left[apart->count++] = (struct watched){
                (uint64_t)(sample->at - bench->outputs) - bench->outputs_at, sample->bytes};
    }
}

/* One in four lies in the last page of an output, where a loop ends. */
static struct watched any_element(struct bench *bench, const struct layout *layout, size_t turn)
{
    struct random *random = &bench->session->random;
    const struct placed *placed = &layout->outputs[random_below(random, layout->output_count)];
    if (placed->elements == 0)
        return (struct watched){placed->offset, 1};
    unsigned bytes = (unsigned)(placed->bytes / placed->elements);
    size_t tail = PAGE_BYTES / bytes;
    size_t from = turn == 0 && placed->elements > tail ? placed->elements - tail : 0;
    size_t element = from + random_below(random, placed->elements - from);
    return (struct watched){placed->offset + element * bytes, bytes};
}

/* Of what was left to others one element, or the last of some, which is nearer to their end; now
 * and then, and where nothing is known, the first of any. */
static void choose_watched(struct bench *bench, const struct layout *layout)
{
    struct apart *apart = &bench->apart;
    struct watch *watch = &apart->watch;
    struct random *random = &bench->session->random;
    bool known = apart->count > 0 && random_below(random, 4) != 0;
    bool last = known && random_below(random, 2) == 0;
    watch->usual_ns = (uint64_t)bench->estimate_ns;
    watch->count = known && !last ? 1 : WATCH_MOST;
    watch->after = last ? WATCH_MOST : 1;
    for (size_t i = 0; i < watch->count; i++) {
        watch->items[i] =
            known ? apart->left[random_below(random, apart->count)] : any_element(bench, layout, i);
        watch->items[i].offset += known ? layout->outputs[0].offset : 0;
    }
}

void apart_tell(struct bench *bench, const struct layout *layout)
{
    struct subject *subject = bench->subject;
    subject->waits = bench->apart.looks ? see_left : NULL;
    subject->waits_context = bench;
    if (bench->halted)
        choose_watched(bench, layout);
    subject->watch = bench->halted ? &bench->apart.watch : NULL;
}
