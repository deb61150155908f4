#include "agents/retrieve/rag/query/nearness.h"

#include <string.h>

enum { SLOTS = 256, WINDOW = 4, APART = WINDOW + 1 };

struct nearing {
    const struct query *query;
    uint8_t first[SLOTS]; /* of the terms whose look is that: index + 1; 0: none */
    uint8_t next[QUERY_TERMS_MOST];
    uint32_t position;               /* of words in the passage, from 1 */
    uint32_t last[QUERY_TERMS_MOST]; /* by place: where it was seen last; 0: not yet */
    float pairs[QUERY_TERMS_MOST];   /* how well each pair of the query is met */
};

static unsigned slot_of(const char *term, size_t length)
{
    return ((unsigned char)term[0] * 31u + (unsigned char)term[length - 1] * 7u +
            (unsigned)length) %
           SLOTS;
}

static void see_place(struct nearing *nearing, size_t place)
{
    const struct query *query = nearing->query;
    for (size_t k = 0; k + 1 < query->sequence_count; k++) {
        size_t before = query->sequence[k], after = query->sequence[k + 1];
        if (before == after || (place != before && place != after))
            continue;
        uint32_t other = nearing->last[place == after ? before : after];
        uint32_t distance = nearing->position - other;
        if (other == 0 || distance > WINDOW)
            continue;
        float met = place == after && distance == 1 ? 1.0f : 0.5f;
        nearing->pairs[k] = met > nearing->pairs[k] ? met : nearing->pairs[k];
    }
    nearing->last[place] = nearing->position;
}

static void see(void *context, const char *term, size_t length, enum word_kind kind)
{
    struct nearing *nearing = context;
    if (kind != WORD_PLAIN && kind != WORD_PART)
        return;
    nearing->position++;
    for (unsigned i = nearing->first[slot_of(term, length)]; i > 0; i = nearing->next[i - 1]) {
        const struct query_term *known = &nearing->query->terms[i - 1];
        if (known->length == length && memcmp(known->text, term, length) == 0)
            see_place(nearing, known->place);
    }
}

float nearness(const struct query *query, struct words *words, const char *title, const char *text)
{
    struct nearing nearing = {.query = query};
    for (size_t i = 0; i < query->count; i++) {
        unsigned slot = slot_of(query->terms[i].text, query->terms[i].length);
        nearing.next[i] = nearing.first[slot];
        nearing.first[slot] = (uint8_t)(i + 1);
    }
    words_each(words, title, strlen(title), see, &nearing);
    nearing.position += APART;
    words_each(words, text, strlen(text), see, &nearing);
    float met = 0, all = 0;
    for (size_t k = 0; k + 1 < query->sequence_count; k++) {
        float one = query->worth[query->sequence[k]], next = query->worth[query->sequence[k + 1]];
        if (one <= 0 || next <= 0)
            continue; /* the index lacks a word: no passage can have the pair */
        all += one + next;
        met += (one + next) * nearing.pairs[k];
    }
    return all > 0 ? met / all : 0;
}
