/* agents/ideas/terms: what words and phrases of an idea mean, by tables of stems that are indexed
 * once. Any thread. */
#pragma once

#include <stddef.h>

enum term_list { TERM_MEANING, TERM_NUMBER, TERM_ACRONYM, TERM_STOP, TERM_COMMON };

struct term {
    enum term_list list;
    const char *text, *stands_for; /* not ended: the first of its meaning stands for all of it */
    size_t size, stands_for_size;
    double weight;
    unsigned
        kind; /* of what it names, from 1 on, where that is one of several ("inner"); 0: none */
};

/* NULL where the list has no such term. */
const struct term *term_find(enum term_list list, const char *text);
