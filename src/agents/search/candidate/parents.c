/* agents/search/candidate/parents: from which kernels a round's ideas start, by --strategy. */
#include "agents/search/candidate/candidate.h"
#include "base/mem.h"

#include <string.h>

size_t search_islands(const struct search *search)
{
    const struct search_options *o = &search->options;
    int64_t count = o->strategy == STRATEGY_ISLANDS ? o->islands : 1;
    if (count > o->branching)
        count = o->branching;
    if (count > ISLANDS_MAX)
        count = ISLANDS_MAX;
    return count < 1 ? 1 : (size_t)count;
}

size_t search_languages(const struct search *search,
                        const struct language *chosen[TARGET_FOLDERS_MAX])
{
    return target_choose(target_find(search->options.backend), search->options.language, chosen);
}

const struct language *search_language(const struct search *search, int island,
                                       const struct attempt *parent)
{
    const struct language *chosen[TARGET_FOLDERS_MAX], *all[TARGET_FOLDERS_MAX];
    if (target_choose(target_find(search->options.backend), "both", all) == 0)
        return NULL;
    size_t count = search_languages(search, chosen);
    if (count > 1 && search_islands(search) < count)
        return parent && parent->arm ? parent->arm->candidate->language : chosen[0];
    return chosen[(size_t)island % count];
}

static size_t add(const struct attempt *parents[PARENTS_MAX], size_t to,
                  const struct contender *all, size_t count)
{
    for (size_t i = 0; i < count && to < PARENTS_MAX; i++)
        parents[to++] = all[i].item;
    return to;
}

/* The best parents have led nowhere for so many rounds: the next in line come first. */
static void turn(struct contender *all, size_t count, int64_t by)
{
    for (int64_t i = 0; count > 1 && i < by % (int64_t)count; i++) {
        struct contender first = all[0];
        memmove(all, all + 1, (count - 1) * sizeof *all);
        all[count - 1] = first;
    }
}

/* An island that has no kernel of its own yet starts from everybody's best. */
size_t search_parents(const struct search *search, int island,
                      const struct attempt *parents[PARENTS_MAX])
{
    const struct search_options *o = &search->options;
    bool alone = o->strategy != STRATEGY_ISLANDS;
    size_t islands = search_islands(search), count;
    struct contender *all = search_contenders(search, alone ? -1 : island, &count);
    turn(all, count, search_staleness(search));
    size_t most =
        o->strategy == STRATEGY_GREEDY ? (count > 0) : select_count(count, o->select, o->beam);
    size_t chosen = add(parents, 0, all, most);
    mem_free(all);
    if (alone)
        return chosen;
    bool visit = o->migration > 0 && search->record.round % o->migration == 0 && islands > 1;
    int from = (int)((size_t)island + islands - 1) % (int)islands;
    if (chosen == 0 || visit) {
        all = search_contenders(search, visit ? from : -1, &count);
        chosen = add(parents, chosen, all, count > 0);
        mem_free(all);
    }
    return chosen;
}
