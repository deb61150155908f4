/* Likeness is the mean of what two sets of words share over what either has (Jaccard), and over
 * what the shorter one has (containment), so that a longer wording of the same stays near. Plain
 * words that differ by an ending that the stemmer leaves or a typing error match by trigrams.
 *
 * Where both name something of one kind and not the same - inner and outer, loads and stores, A
 * and B - they are about different things, however many words they share: that halves it. */
#include "agents/ideas/novelty.h"

#include "agents/ideas/terms.h"
#include "base/mem.h"

#include <ctype.h>
#include <libstemmer.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { NOVELTY_WORDS_MAX = 40, NOVELTY_WORD_BYTES = 24 };

struct word {
    char text[NOVELTY_WORD_BYTES]; /* the stem, or the word that stands for its synonyms */
    double weight;
    unsigned kind; /* of what it names, where that is one of several ("inner"); 0: none */
};

struct words {
    size_t count;
    struct word items[NOVELTY_WORDS_MAX];
};

enum { NOVELTY_KINDS = 32 }; /* kinds are below this */

#define WEIGHT_NUMBER 0.2
#define WEIGHT_COMMON 0.15

enum { TOKENS_MAX = 128, PHRASE_MAX = 3, NAME_LETTERS = 3, KIND_NAMES = NOVELTY_KINDS - 1 };

struct token {
    char text[NOVELTY_WORD_BYTES], stem[NOVELTY_WORD_BYTES];
    bool capitals; /* it was written in capitals alone */
};

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || (c & 0x80) != 0;
}

static size_t read_tokens(const char *text, struct token *tokens)
{
    struct sb_stemmer *stemmer = sb_stemmer_new("english", "ISO_8859_1");
    size_t count = 0;
    for (; count < TOKENS_MAX; count++) {
        struct token token = {.capitals = true};
        size_t length = 0;
        while (*text != '\0' && !is_letter(*text))
            text++;
        if (*text == '\0')
            break;
        for (; is_letter(*text); text++) {
            token.capitals &= !islower((unsigned char)*text);
            if (length < sizeof token.text - 1)
                token.text[length++] = (char)tolower((unsigned char)*text);
        }
        const sb_symbol *stem =
            sb_stemmer_stem(stemmer, (const sb_symbol *)token.text, (int)length);
        memcpy(token.stem, stem, (size_t)sb_stemmer_length(stemmer)); /* never longer */
        tokens[count] = token;
    }
    sb_stemmer_delete(stemmer);
    return count;
}

static bool find_meaning(const char *phrase, struct word *word)
{
    const struct term *found = term_find(TERM_MEANING, phrase);
    if (found == NULL)
        return false;
    memcpy(word->text, found->stands_for, found->stands_for_size);
    word->weight = found->weight;
    word->kind = found->kind;
    return true;
}

/* The longest phrase that `tokens` [count] begin with; returns how many tokens it has. */
static size_t read_phrase(const struct token *tokens, size_t count, struct word *word)
{
    char phrase[PHRASE_MAX * NOVELTY_WORD_BYTES];
    for (size_t size = count < PHRASE_MAX ? count : PHRASE_MAX; size > 0; size--) {
        size_t length = 0;
        for (size_t i = 0; i < size; i++) {
            size_t stem = strlen(tokens[i].stem);
            memcpy(phrase + length, tokens[i].stem, stem);
            length += stem;
            phrase[length++] = ' ';
        }
        phrase[length - 1] = '\0';
        if (find_meaning(phrase, word))
            return size;
    }
    return 0;
}

static struct word read_word(const struct token *token)
{
    struct word word = {.weight = 1};
    size_t length = strlen(token->text);
    memcpy(word.text, token->stem, sizeof word.text);
    if (isdigit((unsigned char)token->text[0]) || term_find(TERM_NUMBER, token->text))
        word.weight = WEIGHT_NUMBER;
    else if (length == 1
                 ? token->capitals || token->text[0] != 'a'
                 : token->capitals && length <= NAME_LETTERS &&
                       !term_find(TERM_ACRONYM, token->text) && !term_find(TERM_STOP, token->text))
        word.kind = KIND_NAMES;
    else if (term_find(TERM_STOP, token->text))
        word.weight = 0;
    else if (term_find(TERM_COMMON, token->stem))
        word.weight = WEIGHT_COMMON;
    return word;
}

/* Lower case, stems, synonyms made one, each once; words past the limit are not looked at. */
static void words_read(const char *text, struct words *words)
{
    struct token tokens[TOKENS_MAX];
    size_t count = read_tokens(text, tokens);
    words->count = 0;
    for (size_t at = 0; at < count && words->count < NOVELTY_WORDS_MAX;) {
        struct word word = {.kind = 0};
        size_t size = read_phrase(tokens + at, count - at, &word);
        if (size == 0)
            word = read_word(&tokens[at]);
        at += size > 0 ? size : 1;
        bool known = word.weight <= 0;
        for (size_t i = 0; i < words->count; i++)
            known |= strcmp(words->items[i].text, word.text) == 0;
        if (!known)
            words->items[words->count++] = word;
    }
}

#define NEAR            0.62
#define SAME_BY_LETTERS 0.6 /* of the trigrams */

enum { LETTERS_LEAST = 5, GRAM = 3 };

static bool same_gram(const char *a, const char *b)
{
    return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

/* Dice's coefficient over trigrams; repeated ones count as often as they can be paired. */
static bool same_letters(const char *a, const char *b)
{
    size_t count_a = strlen(a), count_b = strlen(b), shared = 0;
    unsigned used = 0; /* trigrams of b; a word has fewer than 32 */
    if (count_a < LETTERS_LEAST || count_b < LETTERS_LEAST)
        return false;
    count_a -= GRAM - 1;
    count_b -= GRAM - 1;
    for (size_t i = 0; i < count_a; i++)
        for (size_t j = 0; j < count_b; j++)
            if (same_gram(a + i, b + j) && (used & 1u << j) == 0) {
                used |= 1u << j;
                shared++;
                break;
            }
    return 2.0 * (double)shared >= SAME_BY_LETTERS * (double)(count_a + count_b);
}

static bool same_word(const struct word *a, const struct word *b)
{
    if (strcmp(a->text, b->text) == 0)
        return true;
    return a->kind == 0 && b->kind == 0 && a->weight == 1 && b->weight == 1 &&
           same_letters(a->text, b->text);
}

static double weight_of(const struct words *words)
{
    double sum = 0;
    for (size_t i = 0; i < words->count; i++)
        sum += words->items[i].weight;
    return sum;
}

static double shared_weight(const struct words *a, const struct words *b)
{
    bool used[NOVELTY_WORDS_MAX] = {false};
    double sum = 0;
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++)
            if (!used[j] && same_word(&a->items[i], &b->items[j])) {
                used[j] = true;
                sum += a->items[i].weight;
                break;
            }
    return sum;
}

/* Both name some of a kind, and no one of it together. */
static bool contrast(const struct words *a, const struct words *b)
{
    unsigned in_a = 0, in_b = 0, in_both = 0; /* one bit a kind */
    for (size_t i = 0; i < a->count; i++)
        in_a |= 1u << a->items[i].kind;
    for (size_t j = 0; j < b->count; j++)
        in_b |= 1u << b->items[j].kind;
    for (size_t i = 0; i < a->count; i++)
        for (size_t j = 0; j < b->count; j++)
            if (strcmp(a->items[i].text, b->items[j].text) == 0)
                in_both |= 1u << a->items[i].kind;
    return (in_a & in_b & ~in_both & ~1u) != 0;
}

static double likeness(const struct words *a, const struct words *b)
{
    double weight_a = weight_of(a), weight_b = weight_of(b), shared = shared_weight(a, b);
    double shorter = weight_a < weight_b ? weight_a : weight_b;
    if (shared <= 0 || shorter <= 0)
        return 0;
    shared = shared < shorter ? shared : shorter; /* sums of the same weights in another order */
    double both = weight_a + weight_b - shared;
    double like = (shared / both + shared / shorter) / 2;
    return contrast(a, b) ? like / 2 : like;
}

double novelty_likeness(const char *a, const char *b)
{
    struct words words_a, words_b;
    words_read(a, &words_a);
    words_read(b, &words_b);
    return likeness(&words_a, &words_b);
}

static bool is_tuning(const char *category)
{
    return category != NULL && strcmp(category, "tuning") == 0;
}

struct proposed { /* an idea of the list, and what of the history says the same */
    struct words words;
    const struct prompt_attempt *repeats;
};

/* One by one: the history may be of thousands, and the words of a title are a kilobyte. */
static void look_back(const struct idea *ideas, struct proposed *proposed, size_t count,
                      const struct prompt_attempt *tried)
{
    struct words words;
    words_read(tried->title, &words);
    /* A tuned point says little in words: it is no try of what changes more than a number. */
    for (size_t i = 0; i < count; i++)
        if (proposed[i].repeats == NULL &&
            is_tuning(tried->category) == is_tuning(ideas[i].category) &&
            likeness(&proposed[i].words, &words) >= NEAR)
            proposed[i].repeats = tried;
}

size_t novelty_keep(struct idea *ideas, size_t count, const struct prompt_attempt *history,
                    size_t history_count, struct buf *dropped)
{
    struct proposed *proposed = mem_array(count + 1, sizeof *proposed);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        words_read(ideas[i].title, &proposed[i].words);
    for (size_t i = 0; i < history_count; i++)
        look_back(ideas, proposed, count, &history[i]);
    for (size_t i = 0; i < count; i++) {
        const struct prompt_attempt *tried = proposed[i].repeats;
        const char *repeats = tried != NULL ? tried->title : NULL;
        for (size_t j = 0; j < kept && repeats == NULL; j++)
            if (likeness(&proposed[i].words, &proposed[j].words) >= NEAR)
                repeats = ideas[j].title;
        if (repeats != NULL) {
            buf_addf(dropped, "\"%s\" repeats \"%s\" (%s)\n", ideas[i].title, repeats,
                     tried != NULL ? tried->id : "this list");
            continue;
        }
        ideas[kept] = ideas[i];
        proposed[kept++] = proposed[i];
    }
    mem_free(proposed);
    return kept;
}
