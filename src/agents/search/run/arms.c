/* agents/search/run/arms: sources whose tune space the proposer searches. */
#include "agents/search/run/run.h"

static bool arm_valid(void *context, const struct names *tune)
{
    const struct arm *arm = context;
    return tune_valid(arm->candidate, &arm->search->problem->shapes[0], &arm->search->facts, tune);
}

int search_arm_add(struct search *search, struct arm *arm)
{
    arm->space = (struct proposer_space){.name = arm->name,
                                         .parameter_count = arm->candidate->tune_count,
                                         .parameters = arm->candidate->tune,
                                         .valid = arm_valid,
                                         .context = arm};
    arm->number = proposer_add(search->proposer, &arm->space);
    if (arm->number >= 0)
        search->by_number[arm->number] = arm;
    return arm->number;
}
