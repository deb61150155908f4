/* agents/lessons/memory: what a run knows of the runs before it: chosen once, when it begins, and
 * kept with it, so that a process that goes on with the run knows the same. Any thread. */
#pragma once

#include "agents/lessons/lesson.h"

enum {
    MEMORY_IDEAS_MAX = 160, /* lessons of ideas, wins and others in equal parts */
    MEMORY_POINTS_MAX = 6,  /* points of the tune space of one source */
    MEMORY_KERNELS_MAX = 3, /* measured again in a run's first round */
    MEMORY_CATEGORIES = 8
};

struct lesson_tally { /* of one category of ideas, all earlier runs of the family */
    const char *category;
    int64_t tried, right, won; /* won: lesson_is_win() */
    double best;               /* most that one that won gained at least; 0: none */
};

struct lesson_memory {    /* zero: nothing is known */
    struct lesson *ideas; /* those that tell most about this place first */
    size_t idea_count;
    struct lesson *points; /* kernels; the fastest to be expected first */
    size_t point_count;
    struct lesson *kernels; /* this problem's best of this device, of other sources; best first */
    size_t kernel_count;
    struct lesson_tally tallies[MEMORY_CATEGORIES]; /* in the order of idea_categories */
    int64_t lessons;                                /* how many there were of the family */
};

/* How much what was measured at `there` says about `here`: 1 is the same problem, shape and
 * machine; 0 another backend or family. */
bool lesson_other_language(const struct lesson_place *here, const struct lesson_place *there);
double lesson_nearness(const struct lesson_place *here, const struct lesson_place *there);

/* Reads the lessons of the place's family and backend. `sources`: hashes of the sources whose
 * points are wanted. Results in `arena`; blocks. */
int lesson_memory_collect(struct store *store, const struct lesson_place *here,
                          const char *const *sources, size_t source_count, struct arena *arena,
                          struct lesson_memory *memory, struct err *err) MUST_USE;

void lesson_memory_encode(const struct lesson_memory *memory, struct buf *out);
int lesson_memory_decode(struct arena *arena, const char *text, size_t length,
                         struct lesson_memory *memory, struct err *err) MUST_USE;

/* Deep copy. */
void lesson_copy(struct arena *arena, const struct lesson *from, struct lesson *to);
