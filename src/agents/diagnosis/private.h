/* agents/diagnosis/private: numbers of a profile by name, rules over them, and what else is said of
 * a kernel. Inside src/agents/diagnosis. Pure; any thread. */
#pragma once

#include "agents/diagnosis/diagnosis.h"
#include "base/value.h"

/* ---- numbers: of whatever backend, derived ones among them; what is not known is NaN ---- */

struct metrics { /* the two documents, or NULL */
    const struct value *profile, *facts;
};

/* Texts that are no JSON object count as absent. */
struct metrics metrics_read(struct arena *arena, const char *profile, const char *facts);

/* "scalar_share", ... (the table in metrics.c); an unknown name asserts. */
double metric_number(const struct metrics *metrics, const char *name);

/* The text with each {name} as people write that number ("61 %", "32.5 GB/s", "6", "3.2 us"); "?"
 * where it is not known. */
void metrics_say(const struct metrics *metrics, const char *text, struct buf *out);

/* ---- rules ---- */

/* A rule is data: what must hold of which numbers, and what that means. One table a kind of device,
 * first to last: the first that limits and holds names the limiter; every one that holds is
 * evidence. */
enum { DIAGNOSIS_TERMS_MAX = 5 };

enum diagnosis_kind {
    KIND_LIMIT,    /* names the limiter */
    KIND_EVIDENCE, /* is only said */
    KIND_LAST      /* names the limiter where nothing above did */
};

struct diagnosis_term {
    const char *metric;
    char is; /* '<' or '>'; neither holds for a number that is not known */
    double bound;
};

struct diagnosis_rule {
    enum diagnosis_kind kind;
    const char *limiter, *categories;
    struct diagnosis_term terms[DIAGNOSIS_TERMS_MAX];
    const char *evidence; /* as metrics_say() reads it */
};

struct diagnosis_rules {
    const struct diagnosis_rule *rules;
    size_t count;
};
struct diagnosis_rules diagnosis_rules_cpu(void);
struct diagnosis_rules diagnosis_rules_gpu(void);

#define MEMORY_BOUND  "by_memory", '>', 0.5
#define COMPUTE_BOUND "by_memory", '<', 0.5

/* ---- what is said besides ---- */

/* Lines of evidence: each launch and its share of the time, the longest one's numbers in short, and
 * where the numbers are from. */
void diagnosis_say_kernel(const struct metrics *metrics, struct buf *out);

/* `remarks`: the profile's list, or NULL. One line for each reason, with the lines of the source
 * that it holds for and what usually mends it; what is said of every nest of loops is left out. */
void remarks_say(const struct value *remarks, struct buf *out);

/* Shares of all time, by the profile's "time": in loops that store and compute nothing; in the
 * library whose name begins so. NaN where nothing was sampled. */
double time_moving_share(const struct value *time);
double time_library_share(const struct value *time, const char *name);
