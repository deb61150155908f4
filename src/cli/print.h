/* cli/print: results for people and for programs. */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include "eval/data/evaluation.h"

#include <stdio.h>

/* Verdict, time, speed-up with its interval, checks, the profile's main lines. */
void print_evaluation(const struct evaluation *evaluation, FILE *out);
/* The same, with the source's own name in the compiler's words. */
void print_evaluation_of(const struct evaluation *evaluation, const char *name, FILE *out);
void print_evaluation_json(const struct evaluation *evaluation,
                           FILE *out); /* one object, one line */

#endif
