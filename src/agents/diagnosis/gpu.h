/* agents/diagnosis/gpu: what is said of a GPU's kernel besides rules. Inside src/agents/diagnosis.
 */
#ifndef AGENTS_DIAGNOSIS_GPU_H
#define AGENTS_DIAGNOSIS_GPU_H

#include "agents/diagnosis/metrics.h"

/* Lines of evidence: each launch and its share of the time, the longest one's numbers in short, and
 * where the numbers are from. */
void diagnosis_say_kernel(const struct metrics *metrics, struct buf *out);

#endif
