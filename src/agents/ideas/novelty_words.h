/* agents/ideas/novelty_words: an idea's title as a set of words that can be compared. Pure; any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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

/* Lower case, stems, synonyms made one, each once; words past the limit are not looked at. */
void words_read(const char *text, struct words *words);
