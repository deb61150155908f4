/* cli/print/print: results for people and for programs. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "eval/data/evaluation.h"

#include <stdio.h>

/* Verdict, time, speed-up with its interval, checks, the profile's main lines. */
void print_evaluation(const struct evaluation *evaluation, FILE *out);
/* The same, with the source's own name in the compiler's words. */
void print_evaluation_of(const struct evaluation *evaluation, const char *name, FILE *out);
void print_evaluation_json(const struct evaluation *evaluation,
                           FILE *out); /* one object, one line */

/* What is printed to words_begin()'s stream becomes the member "text", or goes out as
 * print_lines() has it. */
struct words {
    char *text;
    size_t length;
    FILE *out;
};
FILE *words_begin(struct words *words);
void words_end(struct words *words, struct json *json);
void words_print(struct words *words);

/* The words of print_evaluation_of() as the member "text". */
void print_put_words(const struct evaluation *evaluation, const char *name, struct json *json);

/* It is a terminal that does as it is told (TERM is not "dumb"), and NO_COLOR is not set. */
bool print_draws(int descriptor);
bool print_colours(int descriptor);
/* Lines that are longer than the terminal is wide go on below, at a space, beside what they say.
 * Where standard output is none, and JSON, is left as it is. */
void print_wrap(const char *text, struct buf *out);
void print_lines(const char *text, bool json);
