/* eval/cpu/samples: where a kernel's time goes: instruction pointers of all its threads, sampled
 * some thousand times a second over calls that are not timed. The kernel's own clock interrupts
 * (perf_event_open), which a user may have for processes of his own; where he may not, nothing is
 * known. Measuring thread, blocking. */
#pragma once

#include "base/json.h"
#include "eval/backend/subject.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SAMPLES_LIBRARIES = 8, SAMPLES_NAME = 32, SAMPLES_FEW = 40 };

struct samples {
    int failed;          /* errno of what the kernel did not permit; 0: it did */
    size_t total;        /* in user space, wherever */
    size_t own;          /* in the artifact */
    uint64_t *addresses; /* [own], ascending: as a disassembly of the artifact has them */
    size_t library_count;
    struct {
        char name[SAMPLES_NAME]; /* "libm.so.6" */
        size_t count;
    } libraries[SAMPLES_LIBRARIES];
};

/* Calls again and again until there are enough, or for some tenths of a second; while there are
 * fewer than SAMPLES_FEW for up to two. All zero where sampling is not permitted; samples_free()
 * either way. */
void samples_take(struct subject *subject, const char *artifact, const struct call *call,
                  struct samples *samples);
bool samples_available(void); /* whether the kernel permits it */
void samples_free(struct samples *samples);

/* How many lie in [from, to]. */
size_t samples_between(const struct samples *samples, uint64_t from, uint64_t to);
