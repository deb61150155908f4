/* eval/measure/session_private: what the files of session, measure and fitness share. Worker's
 * measuring thread. */
#pragma once

#include "eval/measure/measure.h"
#include "eval/sets/session.h"

/* --- session_count.c: members of an open JSON object --- */
struct json;
void session_count_caches(struct bench *bench, struct json *json);

/* --- session_measure.c --- */
struct bench *bench_begin(struct session *session, const struct measure_request *request,
                          struct arena *arena, struct evaluation *evaluation);

/* --- session_baseline.c --- */
int baselines_open(struct session *session, struct err *err) MUST_USE;
int baseline_ready(struct session *session, struct baseline *baseline, struct err *err) MUST_USE;
/* What takes seconds to get ready does so beside whatever is next, where it can, and is pending
 * until then. All: not only the one that speed-ups are against. Held, it stands still. */
void baselines_begin(struct session *session, bool all);
/* A library that candidates are timed with: its process starts beside the definition's. */
void baselines_begin_library(struct session *session);
bool baseline_pending(const struct baseline *baseline);
void baselines_hold(struct session *session, bool held);
/* What the next candidate is timed with is there, and nothing is pending on the device. */
int baseline_await(struct session *session, struct err *err) MUST_USE;
void baseline_close(struct session *session, struct baseline *baseline);
void baseline_free(struct session *session, struct baseline *baseline); /* with the session */
void baselines_rest(struct session *session);                           /* after each evaluation */
void baseline_remember(struct baseline *baseline, double median_ns);
double baseline_median(const struct baseline *baseline); /* over the session; NaN: none yet */

/* --- session_cost.c --- */
void cost_learn(struct session *session, const struct evaluation *evaluation,
                const struct spent *on_sets);
double cost_of_baseline(const struct session *session, const struct baseline *baseline);
double cost_of_profile(const struct session *session);
/* Of one call; of the second, which is warm. */
int baseline_time(struct session *session, struct baseline *baseline, double *ns,
                  struct err *err) MUST_USE;
/* The same of PyTorch on a device that was never timed, for who only wants to know whether a
 * candidate is far from it. */
void baseline_look(struct session *session);
/* False, and a note, where the request's time would be over. */
double bench_left_ms(const struct bench *bench); /* of the request's time; INFINITY: no end */
bool bench_affords(struct bench *bench, double ms, const char *what);

/* --- large.c: calls of shapes as large as the timed one: how many; one; those of a win --- */
size_t large_calls(const struct bench *bench);
int large_check(struct bench *bench, size_t index, struct err *err) MUST_USE;
void large_tell(struct bench *bench); /* a note of what could not be asked; after all of them */
int large_of_win(struct bench *bench, struct err *err) MUST_USE;

/* --- fitness_known.c --- */
int session_still_fit(struct session *session, struct err *err) MUST_USE;
