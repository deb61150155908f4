/* eval/candidate/read: what front matter says, a key at a time. Inside eval/candidate only. */
#pragma once

#include "eval/candidate/candidate.h"
#include "eval/problem/text.h"

struct candidate_reading {
    struct document document;
    const struct problem *problem;
    struct candidate *candidate;
    bool facts; /* expressions may use device facts here, not dims and tune parameters alone */
};

/* All keys of the front matter's map. */
int candidate_read(struct candidate_reading *reading, const struct value *root) MUST_USE;

/* Whether expressions may use facts of the device from here on, and how names are then called. */
void candidate_facts(struct candidate_reading *reading, bool facts);

/* What a name stands for, and that one is still free. */
bool candidate_is_workspace(const struct candidate *candidate, const char *name);
int candidate_check_free(const struct candidate_reading *reading, int line, const char *what,
                         const char *name) MUST_USE;

/* tma: and memset:, before launch:. */
int candidate_read_maps(struct candidate_reading *reading, const struct value *map) MUST_USE;
int candidate_read_memsets(struct candidate_reading *reading, const struct value *map) MUST_USE;

/* launch:, once tune: is known. */
int candidate_read_launches(struct candidate_reading *reading, const struct value *list) MUST_USE;
