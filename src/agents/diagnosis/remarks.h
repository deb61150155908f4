/* agents/diagnosis/remarks: why a compiler did not vectorize, as evidence. Pure; any thread. */
#ifndef AGENTS_DIAGNOSIS_REMARKS_H
#define AGENTS_DIAGNOSIS_REMARKS_H

#include "base/buf.h"
#include "base/value.h"

/* `remarks`: the profile's list, or NULL. One line for each reason, with the lines of the source
 * that it holds for and what usually mends it; what is said of every nest of loops is left out. */
void remarks_say(const struct value *remarks, struct buf *out);

#endif
