#include "agents/retrieve/rag/query/query.h"

#include <string.h>

static const float OTHER_NAME = 0.4f; /* what another name is worth of a word */
static const float LIGHT = 0.5f;      /* what a word of questions is worth */
static const float ENUMERATOR = 3.0f; /* what a message quoted stands for */

/* Stems, sorted, of words that questions are made of. In an index of headers they are rare, so that
 * their idf alone would make "tell" or "whose" the word that matters. */
static const char *const light[] = {
    "abl",    "actual",  "again",    "all",    "also",    "alway",  "anoth",   "anyon",   "anyth",
    "away",   "bad",     "becom",    "best",   "better",  "both",   "bring",   "cannot",  "certain",
    "come",   "done",    "each",     "either", "els",     "enough", "ever",    "everi",   "everyth",
    "find",   "give",    "given",    "go",     "good",    "happen", "help",    "here",    "keep",
    "kind",   "know",    "known",    "leav",   "let",     "like",   "littl",   "look",    "lot",
    "made",   "make",    "mani",     "mean",   "mine",    "more",   "most",    "much",    "must",
    "need",   "never",   "nobodi",   "none",   "not",     "noth",   "now",     "often",   "onc",
    "onli",   "other",   "otherwis", "own",    "perhap",  "pleas",  "possibl", "put",     "quit",
    "rather", "realli",  "same",     "say",    "see",     "seem",   "show",    "simpli",  "sinc",
    "someth", "sometim", "still",    "take",   "tell",    "thing",  "though",  "through", "togeth",
    "too",    "tri",     "turn",     "until",  "upon",    "use",    "usual",   "veri",    "want",
    "way",    "well",    "whether",  "whose",  "without", "yet"};

static bool is_light(const char *term)
{
    return words_among(light, sizeof light / sizeof light[0], term, strlen(term));
}

static size_t find(const struct query *query, const char *term, size_t length)
{
    size_t i = 0;
    while (i < query->count &&
           (query->terms[i].length != length || memcmp(query->terms[i].text, term, length) != 0))
        i++;
    return i;
}

static struct query_term *append(struct query *query, const char *term, size_t length, float weight)
{
    if (query->count == QUERY_TERMS_MOST || length > TERM_MAX)
        return NULL;
    struct query_term *new = &query->terms[query->count];
    *new = (struct query_term){.length = length, .weight = weight, .place = query->count++};
    memcpy(new->text, term, length);
    return new;
}

static void take_term(void *context, const char *term, size_t length, enum word_kind kind)
{
    static const float weights[] = {
        [WORD_PLAIN] = 1.0f, [WORD_WHOLE] = 1.5f, [WORD_PART] = 0.5f, [WORD_PREFIX] = 0.3f};
    struct query *query = context;
    size_t place = find(query, term, length);
    if (place < query->count) {
        query->terms[place].weight += weights[kind] * 0.5f;
    } else {
        struct query_term *new = append(query, term, length, weights[kind]);
        if (new == NULL)
            return;
        new->plain = kind == WORD_PLAIN;
        new->weight *= new->plain &&is_light(new->text) ? LIGHT : 1;
    }
    if ((kind == WORD_PLAIN || kind == WORD_PART) && query->sequence_count < QUERY_TERMS_MOST)
        query->sequence[query->sequence_count++] = place;
}

struct naming {
    struct query *query;
    size_t place; /* of the query's own word */
};

static void take_other_name(void *context, const char *term, size_t length, enum word_kind kind)
{
    struct naming *naming = context;
    struct query *query = naming->query;
    (void)kind;
    if (find(query, term, length) < query->count)
        return;
    float weight = query->terms[naming->place].weight * OTHER_NAME;
    struct query_term *new = append(query, term, length, weight);
    if (new == NULL)
        return;
    new->other = new->plain = true;
    new->place = naming->place;
}

static void take_enumerator(void *context, const char *term, size_t length, enum word_kind kind)
{
    struct query *query = context;
    (void)kind;
    if (find(query, term, length) < query->count)
        return;
    struct query_term *new = append(query, term, length, ENUMERATOR);
    if (new != NULL)
        new->other = true;
}

void query_read(struct query *query, const char *text, struct words *words,
                const struct synonyms *synonyms, const struct messages *messages)
{
    const char *terms[QUERY_TERMS_MOST];
    query->count = query->sequence_count = 0;
    words_each(words, text, strlen(text), take_term, query);
    size_t own = query->count;
    for (size_t i = 0; i < query->sequence_count; i++)
        terms[i] = query->terms[query->sequence[i]].text;
    messages_each(messages, terms, query->sequence_count, take_enumerator, query);
    for (size_t i = 0; i < own; i++) {
        struct naming naming = {query, i};
        synonyms_each(synonyms, query->terms[i].text, query->terms[i].length, take_other_name,
                      &naming);
    }
}
