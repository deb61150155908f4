/* eval/sets/view: sets of large shapes whose right results cost the definition little, by dims that
 * can be sliced (slice.c).
 *
 *   expanded   a small problem is drawn, and the large inputs are gathered from it: row i of the
 *              one is row map[i] of the other. Every element of the large output is known.
 *   sampled    the large inputs are drawn; what stands at a random sample of indices, the ends and
 *              multiples of tiles among them, is the small problem. Of the large output those
 *              elements are compared, and that all others were written.
 *
 * An expanded one may be mixed: its small problem has segments along one dim, each of them drawn by
 * another distribution, with bounds of its own. Inside src/eval. Worker's measuring thread. */
#pragma once

#include "eval/sets/sets.h"

enum view_kind { VIEW_EXPANDED, VIEW_SAMPLED };
enum { SEGMENTS_MOST = DISTRIBUTIONS };

struct view {
    enum view_kind kind;
    bool finer;          /* statistics are made of it: more indices of each dim */
    struct maps maps;    /* expanded: to the large one from the small; sampled: the other way */
    struct shape small;  /* what the definition computes */
    struct set part;     /* of that shape; its bounds are of segment 0 where that is all */
    int mixed;           /* the dim that segments lie along; -1: one segment */
    struct shape *slice; /* of one segment; NULL: `small` */
    size_t segment_count, judged; /* judged: the segment of the largest error, last time */
    bool excused;                 /* rows that hang on a tie were left out then */
    struct segment {
        enum distribution distribution;
        bool unfit;
        struct bound bounds[OUTPUTS_MAX];
    } segments[SEGMENTS_MOST];
};

/* Of a shape that outlives it. False: nothing can be sliced, or even so the definition would take
 * too long; *set is then an ordinary one. */
bool view_open(struct session *session, struct set *set, enum view_kind kind, bool mixed);
void view_close(struct set *set);
/* With a small problem of the same shape as that of `like`, which is sampled and of the same shape,
 * too. */
bool view_open_like(struct session *session, struct set *set, const struct set *like);
/* What the definition has computed of it: its small problem, or the set itself. */
const struct set *set_computed(const struct set *set);
/* Sets of it are views where the session is sliced: of the main shape, and of as large ones. */
bool shape_is_sliced(const struct session *session, const struct shape *shape);
/* Large inputs of a view that has been placed, or NULL: of all that the session keeps. They are
 * drawn anew when the set is expected again. Nothing where there is room for all. */
void session_let_go(struct session *session, const struct set *of);
/* Other indices, for the same small problem of an expanded one; a sampled one is drawn anew. */
void view_turn(struct session *session, struct set *set);
/* What stands at sampled indices of a set that has its results: sample->view->part, of results of
 * its own. False: nothing can be sliced. set_free(sample) either way. */
bool view_sample(struct session *session, const struct set *set, struct set *sample);
/* As check_output(), for any set. `placed` is the large output's. */
void set_judge(struct session *session, const struct set *set, size_t output,
               const struct placed *placed, const void *got, struct mismatch *mismatch);
/* Of what was farthest off when it was judged last. */
const struct bound *set_bound(const struct set *set, size_t output);
enum distribution set_distribution(const struct set *set);
bool set_excused(const struct set *set);
/* Writes input `index` to where a call finds it. */
void set_put(const struct session *session, const struct set *set, size_t index, void *to);

/* --- segments.c: which distributions a mixed one has; along which dim, -1: none; what it gives ---
 */
void segments_list(struct session *session, struct view *view);
int segments_choose(struct session *session, const struct shape *large, size_t segments);
int segments_expect(struct session *session, struct view *view, struct err *err) MUST_USE;
