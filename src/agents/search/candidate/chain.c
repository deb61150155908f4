/* agents/search/candidate/chain: candidates of the built-in proposer, in order.
 *
 * Number k is proposed when exactly the candidates before k - window have been taken, however fast
 * they were: so that the same verdicts give the same proposals, and a run that died can be run
 * again. The window is what the lanes hold, so that none of them waits for a proposal.
 */
#include "agents/search/candidate/candidate.h"

/* On a pool thread: it computes for some milliseconds. Nobody else touches the proposer meanwhile.
 */
static void propose(void *argument)
{
    struct chain *chain = argument;
    chain->has_proposal = proposer_next(chain->proposer, &chain->proposal);
}

/* A proposer that has nothing left may have something again when it has heard of all. */
static void proposed(struct search *search, struct chain *chain)
{
    chain->work.done = false;
    if (!chain->has_proposal) {
        chain->over = chain->drained;
        chain->drained = true;
        return;
    }
    chain->drained = false;
    attempt_start(search, chain);
    chain->proposed++;
}

/* How many must have been taken before the next is proposed. */
static int64_t due(const struct chain *chain)
{
    if (chain->over || chain->drained)
        return chain->proposed;
    int64_t due = chain->proposed + 1 - chain->window;
    return due > 0 ? due : 0;
}

bool chain_step(struct search *search, struct chain *chain)
{
    if (chain->work.active)
        return true;
    if (chain->work.done)
        proposed(search, chain);
    for (;;) {
        while (chain->taken < due(chain)) {
            struct attempt *attempt = search_ended(search, chain->first + chain->taken);
            if (!attempt)
                return true;
            chain->taken++;
            search_take(search, attempt);
        }
        if (chain->over)
            return false;
        if (chain->proposed < chain->limit && search_may_propose(search))
            break;
        chain->over = true;
    }
    chain->proposer = search->proposer;
    work_start(search->task.loop, &chain->work, &search->task, propose, chain);
    return true;
}

void chain_more(struct chain *chain, int64_t count)
{
    chain->limit = chain->proposed + count;
    chain->over = chain->drained = false;
}
