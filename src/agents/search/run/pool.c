/* agents/search/run/pool: the kept kernels: who is the best, in which order they stand. */
#include "agents/search/run/run.h"

#include "base/mem.h"

/* Whom the ranking knows: not one that was dropped after a few samples. */
bool search_ranks(const struct attempt *attempt)
{
    return attempt_is_kernel(attempt) && !attempt->record.dropped;
}

static struct contender contender_of(struct attempt *attempt)
{
    const struct candidate_record *record = &attempt->record;
    return (struct contender){.time_high =
                                  record->time_high > 0 ? record->time_high : record->time_ns,
                              .time_ns = record->time_ns,
                              .number = record->number,
                              .item = attempt};
}

void search_name_best(struct search *search, struct attempt *attempt)
{
    const struct candidate_record *record = &attempt->record;
    search->best = attempt;
    const char *baseline = attempt->request.evaluation.baseline;
    if (baseline) /* once taken it is on the disk alone, and the run has it */
        search->record.baseline = arena_strdup(search->arena, baseline);
    search->record.time_ns = record->time_ns;
    search->record.speedup = record->speedup;
    search->record.speedup_low = record->speedup_low;
    search->record.speedup_high = record->speedup_high;
    log_event(attempt->recalled ? LOG_DEBUG : LOG_INFO, "run.best", record->id,
              "%.*f us, %.3gx %s (95 %%: %.3g to %.3g)", record->time_ns < 100e3 ? 1 : 0,
              record->time_ns / 1e3, record->speedup, search->record.baseline, record->speedup_low,
              record->speedup_high);
}

void search_rank(struct search *search, struct attempt *attempt)
{
    struct contender two[] = {contender_of(attempt), contender_of(attempt)};
    if (search->best)
        two[1] = contender_of(search->best);
    select_sort(two, 2);
    if (!search->best || two[0].item == attempt)
        search_name_best(search, attempt);
}

struct prompt_kernel search_kernel_words(const struct attempt *attempt)
{
    if (!attempt)
        return (struct prompt_kernel){.id = ""};
    return (struct prompt_kernel){.id = attempt->record.id,
                                  .name = attempt->arm->name,
                                  .source = attempt->arm->text,
                                  .tune = attempt->record.tune,
                                  .metrics = attempt->metrics,
                                  .finding = finding_name(attempt->finding),
                                  .time_ns = attempt->record.time_ns,
                                  .speedup = attempt->record.speedup,
                                  .speedup_low = attempt->record.speedup_low,
                                  .speedup_high = attempt->record.speedup_high};
}

const struct attempt *search_surest(const struct search *search)
{
    const struct attempt *best = NULL;
    list_each (link, &search->kept) {
        const struct attempt *kept = container_of(link, struct attempt, link);
        if (!best || kept->record.speedup_low > best->record.speedup_low)
            best = kept;
    }
    return best;
}

struct contender *search_contenders(const struct search *search, int island, size_t *count)
{
    size_t most = 0;
    *count = 0;
    list_each (link, &search->kept)
        most++;
    struct contender *all = mem_array(most + 1, sizeof *all);
    list_each (link, &search->kept) {
        struct attempt *kept = container_of(link, struct attempt, link);
        if ((island >= 0 && kept->island != island) || *kept->record.duplicate_of ||
            !search_ranks(kept))
            continue;
        all[(*count)++] = contender_of(kept);
    }
    select_sort(all, *count);
    return all;
}

struct attempt *search_ended(struct search *search, int64_t number)
{
    list_each (link, &search->ended) {
        struct attempt *attempt = container_of(link, struct attempt, link);
        if (attempt->record.number == number)
            return attempt;
    }
    return NULL;
}

struct attempt *search_next_ended(struct search *search, int64_t after)
{
    struct attempt *first = NULL;
    list_each (link, &search->ended) {
        struct attempt *attempt = container_of(link, struct attempt, link);
        if (attempt->record.number > after &&
            (!first || attempt->record.number < first->record.number))
            first = attempt;
    }
    return first;
}
