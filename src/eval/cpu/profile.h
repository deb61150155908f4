/* eval/cpu/profile: the parts of a profile. Each adds its member to an open JSON object; what is
 * not known is null or left out, never 0. Measuring thread, blocking. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "eval/backend/backend.h"
#include "eval/cpu/mix.h"

/* "remarks": [{"line", "kind": "vectorized" | "missed", "text"}], from what the compiler left in
 * `path` (gcc's -fopt-info-vec-all or clang's -Rpass). Absent where there is none. */
void remarks_put(const char *path, struct json *json);
void remarks_parse(const char *text, size_t length, struct json *json); /* the array alone */

/* "hot_loop": {...}: what the artifact's loop with the most samples is made of (without samples:
 * its innermost, most vectorized one), its instructions with the share of the loop's samples
 * ("code", 96 lines at most), and "time": how loops and libraries share the time (mix.h). Absent
 * where there is no objdump or no loop. x86-64 alone. */
void mix_put(const char *artifact, const struct samples *samples, struct json *json);
/* The object, or null; what has samples goes into `phases`. Both may be NULL. */
void mix_parse(const char *disassembly, const struct samples *samples, struct phases *phases,
               struct json *json);

/* "counters": {"cycles", "instructions", "cache_misses", "instructions_per_cycle"} of one call. */
void counters_put(struct subject *subject, const struct call *call, struct json *json);
