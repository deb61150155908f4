/* agents/diagnosis/rules: a rule is data: what must hold of which numbers (metrics.c),
 * and what that means. One table a kind of device, first to last: the first that limits and holds
 * names the limiter; every one that holds is evidence. Inside src/agents/diagnosis. */
#ifndef AGENTS_DIAGNOSIS_RULES_H
#define AGENTS_DIAGNOSIS_RULES_H

#include <stddef.h>

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

#endif
