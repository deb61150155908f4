/* eval/data/evaluation: one candidate's verdict and measurements on one device; the record that
 * leaves the worker, lies in the store and is printed by `eval --json`. Plain values. Any thread.
 */
#pragma once

#include "base/arena.h"
#include "base/json.h"
#include "base/value.h"
#include "eval/data/stats.h"

enum verdict {
    VERDICT_KERNEL,   /* passed every check */
    VERDICT_REJECTED, /* ran, and was wrong, or broke a rule */
    VERDICT_FAILED,   /* did not compile, crashed, hung, or something of ours broke */
    VERDICT_DROPPED   /* far behind, and checked at the main shape alone, or no more was asked for:
                         no kernel */
};

enum stage {
    STAGE_PARSE,
    STAGE_COMPILE,
    STAGE_CHECK,
    STAGE_TIME,
    STAGE_SANITIZE,
    STAGE_PROFILE,
    STAGES
};

enum effort {
    EFFORT_SEARCH, /* all checks; few samples where the candidate is far behind `best_ns` */
    EFFORT_FULL,   /* the default of `eval`: all checks, samples until the interval is narrow */
    EFFORT_FINAL /* fresh seeds, fresh runners, real A/A run, every baseline, hot time, sanitizer */
};

struct evaluation {
    enum verdict verdict;
    enum stage stage; /* the stage that gave the verdict; STAGE_PROFILE or STAGE_TIME at the end */
    const char *reason;   /* one line; "" for a kernel; "dropped: far behind: ..." is one's too */
    const char *details;  /* for repairs: compiler diagnostics or the mismatch, many lines; or "" */
    bool ours;            /* failed through no fault of the candidate: try again */
    bool dropped;         /* far behind the best: few samples. A kernel, or VERDICT_DROPPED */
    bool outside;         /* more than the device has: these numbers are no point of its space */
    bool quarantined;     /* below the bytes floor: rejected, and kept for a person to look at */
    enum finding finding; /* what the comparison with the baseline shows */
    const char *noise;    /* FINDING_NOISY: why, and what would help; else "" */
    const char *left_out; /* what a finalist lacks, and why: baselines, of which one may be the
                             best; its package; "" */
    const char *unfit;    /* what the problem's tolerance lets pass, so that this says little; "" */
    const char *unconfined; /* what was missing of the sandbox around it; "" */
    struct interval time_ns, hot_ns, baseline_ns, speedup;
    struct interval
        call_ns;          /* what a call itself takes, of an empty kernel; samples 0: not known */
    bool call_taken;      /* ... off the times and the speed-up; else it is in all of them */
    const char *baseline; /* the name of what speedup is against */
    double spread;        /* A/A: of the one that strays further from itself */
    int64_t checks_passed, checks_total;
    double look_ns; /* of a kernel that was looked at first: the fastest call then; else 0 */
    int64_t timed_samples, dropped_samples;
    double stage_ms[STAGES]; /* wall time spent; STAGE_SANITIZE 0: no sanitizer has run */
    const char *identity;    /* hash of source and tune numbers */
    const char *tune;        /* JSON object of tune numbers */
    const char *metrics;     /* JSON object: profile; "{}" where none */
    const char *device;      /* JSON object: cpu, cores, march, caches, roofline */
    const char *versions;    /* JSON object: twagent, compiler, numpy, kernel */
    const char *baselines;   /* JSON object: final only: name -> {ns, speedup} for every baseline */
};

enum effort effort_find(const char *text); /* "search", "final"; all else: EFFORT_FULL */

/* Of nothing yet: failed at parse, every text empty. */
struct evaluation evaluation_empty(void);
/* The verdict of what was never measured. -1. */
int evaluation_refuse(struct evaluation *evaluation, struct arena *arena, enum stage stage,
                      const char *reason, const char *details);
/* What was looked at is far behind `best_ns`: VERDICT_DROPPED. */
void evaluation_drop(struct evaluation *evaluation, struct arena *arena, double fastest_ns,
                     double best_ns);
/* Its numbers ask for more than the device has: no candidate that failed. */
void evaluation_leave_out(struct evaluation *evaluation, struct arena *arena, const char *why);
bool evaluation_wins(const struct evaluation *evaluation);
const char *verdict_name(enum verdict verdict); /* "kernel", "rejected", "failed", "dropped" */
const char *stage_name(enum stage stage);       /* "parse", "compile", ... */

void evaluation_put_interval(struct json *json, const struct interval *interval);
void evaluation_to_json(const struct evaluation *evaluation, struct json *json); /* one object */
int evaluation_decode(struct arena *arena, const char *text, size_t length,
                      struct evaluation *evaluation, struct err *err) MUST_USE; /* of its JSON */
/* Texts are copied into `arena`. ERR_PROTOCOL where a field is missing or of another type. */
int evaluation_from_value(struct arena *arena, const struct value *value,
                          struct evaluation *evaluation, struct err *err) MUST_USE;
