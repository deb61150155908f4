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

/* How many must have been taken before the next is proposed: of one beyond the limit all up to
 * there. */
static int64_t due(const struct chain *chain)
{
    if (chain->over || chain->drained)
        return chain->proposed;
    int64_t due = chain->proposed + 1 - chain->window, least = chain->filled ? chain->limit : 0;
    return due > least ? due : least;
}

static bool wants_more(const struct chain *chain)
{
    enum { FILL_MOST = 2048 }; /* of a round: none of them is forgotten before its end */
    int64_t beyond = chain->proposed - chain->limit;
    if (beyond < 0 || !chain->filled)
        return beyond < 0;
    return chain->proposed < chain->recalled || (chain->fills && beyond < FILL_MOST);
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
        if (wants_more(chain) && search_may_propose(search))
            break;
        if (chain->filled && !chain->closed && search_may_propose(search))
            return true; /* the next waits for what it is due, and for nothing else */
        chain->over = true;
    }
    chain->proposer = search->proposer;
    work_start(search->task.loop, &chain->work, &search->task, propose, chain);
    return true;
}

bool chain_fill(struct chain *chain, bool wanted, bool closed)
{
    bool more = wanted || chain->recalled > chain->limit;
    bool at_limit = chain->over && chain->proposed == chain->limit && chain->taken == chain->limit;
    chain->fills = wanted;
    chain->closed = closed;
    if (!more || !at_limit || chain->filled)
        return false;
    chain->filled = true;
    chain->over = chain->drained = false;
    return true;
}

void chain_more(struct chain *chain, int64_t count)
{
    chain->limit = chain->proposed + count;
    chain->over = chain->drained = false;
}
