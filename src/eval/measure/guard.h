/* eval/measure/guard: calls whose inputs lie against memory that cannot be read. Inside src/eval.
 * Worker's measuring thread. docs/threat-model.md has the rules. */
#pragma once

#include "eval/measure/measure.h"

/* Which side of its inputs this case, or a check of the main shape in this slot, is guarded on. */
enum guard guard_of_case(const struct session *session, size_t index);
enum guard guard_of_main(size_t slot);
/* Re-arranges for bench->guarded, where the subject can and it fits. */
void guard_arrange(struct bench *bench, struct layout *layout);
/* What lies around the inputs of a layout that was, in order. */
void guard_visit(const struct layout *layout, void (*visit)(void *context, size_t from, size_t to),
                 void *context);
/* Behind (and before) each input, up to the guards: numbers that spoil what they are used in. */
void guard_fill(struct bench *bench, const struct layout *layout, unsigned char *base);
/* True where the subject died of reading out of bounds: that is the verdict now. */
bool guard_hit(struct bench *bench, const struct set *set, const struct arrangement *arrangement);
