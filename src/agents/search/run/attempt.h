/* agents/search/run/attempt: one candidate on its way, and the source that it is a point of. Inside
 * src/agents/search. */
#pragma once

#include "agents/proposer/proposer.h"
#include "agents/record/record.h"
#include "agents/search/run/lanes.h"
#include "base/list.h"
#include "eval/candidate/candidate.h"
#include "loop/task.h"
#include "store/writer.h"

struct search;
struct chain;
struct idea;
struct writing;

/* A source whose tune space the proposer searches: a shipped start, or a kernel that a model wrote.
 */
struct arm {
    struct search *search;
    const char *name; /* "packed.c" */
    const char *text;
    size_t length;
    char source_hash[33];
    const char *origin; /* candidate that wrote it, or "" for a shipped start */
    const char *before; /* of one that is tuned: its numbers, a JSON object; or NULL */
    struct candidate *candidate;
    int number; /* in the proposer, or -1 */
    int island;
    struct proposer_space space;
    bool stored;
};
int search_arm_add(struct search *search, struct arm *arm); /* its number, or -1 */

/* What a candidate starts from, as it was when that was decided; its lesson compares with it. */
struct before {
    const char *limiter; /* NULL or "": not known */
    double time_ns, speedup, speedup_low, speedup_high;
};

/* See candidate.c. */
enum attempt_state {
    PROPOSED,
    WRITING,
    COMPILING,
    CHECKING,
    TIMING,
    PROFILING,
    KEPT,
    REJECTED,
    FAILED,
    DROPPED, /* far behind at the main shape, the only one that it was checked at */
    ATTEMPT_STATES
};

struct attempt {
    struct task task;
    struct search *search;
    struct link link; /* in search->running, then ->ended, then ->kept or freed */
    struct arena *arena;
    struct idea_record idea; /* written with the candidate where its id is new */
    struct candidate_record record;
    const struct candidate_record *recalled; /* as an earlier process left it; NULL: new */
    struct arm *arm;                         /* NULL until a model has written it */
    int island;
    struct names tune;
    struct before before;
    struct writing *writing; /* NULL: of the built-in proposer, or taken */
    bool fills;              /* the lane, while a model thinks: beyond a round's own points */
    bool wrote;              /* a model did: the source is its own, not a start's */
    struct slot slot, twin_slot;
    struct lane_place *place; /* the lane that it is in */
    bool in_lane, written;    /* waits for or has a place in the lanes; its source is there */
    bool stored, committing, submitted, answered, abandoned;
    int next_state;
    struct lane_request request;
    struct store_write write;
    unsigned deaths;
    /* of what is kept, whose evaluation is on the disk: its profile, and what it was measured by */
    const char *metrics, *baseline;
    enum finding finding;
    double baseline_ns, spread;
};

static inline bool attempt_is_kernel(const struct attempt *attempt)
{
    return attempt->task.state == KEPT;
}
