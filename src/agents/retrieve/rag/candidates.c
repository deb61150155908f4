#include "agents/retrieve/rag/candidates.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static void down(struct candidate *heap, size_t count, size_t at)
{
    for (;;) {
        size_t least = at, left = 2 * at + 1, right = left + 1;
        if (left < count && heap[left].score < heap[least].score)
            least = left;
        if (right < count && heap[right].score < heap[least].score)
            least = right;
        if (least == at)
            return;
        struct candidate moved = heap[at];
        heap[at] = heap[least];
        heap[least] = moved;
        at = least;
    }
}

void candidates_take(struct candidates *candidates, struct candidate one)
{
    struct candidate *heap = candidates->items;
    if (candidates->count == candidates->most) {
        heap[0] = one;
        down(heap, candidates->count, 0);
        return;
    }
    heap[candidates->count++] = one;
    if (candidates->count == candidates->most)
        for (size_t at = candidates->most / 2 + 1; at-- > 0;)
            down(heap, candidates->count, at);
}

static int by_score(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x->number > y->number) - (x->number < y->number);
}

void candidates_sort(struct candidates *candidates)
{
    if (candidates->count > 1)
        qsort(candidates->items, candidates->count, sizeof *candidates->items, by_score);
}

void candidates_fuse(struct candidates *words, const struct candidates *others)
{
    static const float CALM = 60;
    size_t count = words->count;
    struct candidates all = {mem_array(count + others->count + 1, sizeof *all.items), count,
                             count + others->count + 1};
    for (size_t i = 0; i < count; i++)
        all.items[i] = (struct candidate){words->items[i].number, 1 / (CALM + (float)i + 1)};
    for (size_t i = 0; i < others->count; i++) {
        size_t at = 0;
        while (at < count && all.items[at].number != others->items[i].number)
            at++;
        float worth = 1 / (CALM + (float)i + 1);
        if (at < count)
            all.items[at].score += worth;
        else
            all.items[all.count++] = (struct candidate){others->items[i].number, worth};
    }
    candidates_sort(&all);
    words->count = all.count < words->most ? all.count : words->most;
    memcpy(words->items, all.items, words->count * sizeof *words->items);
    mem_free(all.items);
}
