/* agents/search/candidate/model: who is asked, and what every prompt says. Inside
 * src/agents/search. */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct search;
struct model;
struct models;

enum { SHRINK_ALL = 12 }; /* steps after which nothing more can be left out of a prompt */

/* Before anything of the run is written: a cap that cannot be kept is refused. */
int search_budget_open(struct search *search, struct err *err) MUST_USE;
int search_model_open(struct search *search, struct err *err) MUST_USE;
void search_model_close(struct search *search);
struct draw { /* whom to ask */
    bool idea;
    const char *asker, *purpose;
    int64_t number, step;
    uint64_t tried; /* of those that can be drawn, a bit each: they have failed at it */
};
/* By weight, among those that can be asked now; by whom it was answered where a run goes on. NULL
 * (and the provider is stopped) where nobody can be asked any more. */
const struct model *search_pick_model(struct search *search, const struct draw *draw);
/* Notes that this one failed; true: there is another who can be asked now. */
bool search_pick_another(struct search *search, struct draw *draw, const struct model *model);
/* The model's, and more where its answers repeat what is known. */
double search_temperature(const struct search *search, const struct model *model);
const struct models *search_models(const struct search *search, bool idea);
