/* agents/search/candidate/lessons: what a run learns from the runs before it, and what it leaves to
 * the next. Inside src/agents/search. */
#pragma once

#include "agents/diagnosis/diagnosis.h"
#include "agents/lessons/memory.h"

#include <stdbool.h>
#include <stddef.h>

struct search;
struct attempt;
struct search_about;
struct store_batch;
struct prompt_context;

struct lessons {
    struct lesson_place place;
    const char *facts;           /* of the machine: a JSON object, as in the run's context */
    struct lesson_memory memory; /* of earlier runs */
    struct lesson *taught;       /* of this one's ideas, in the order of taking */
    size_t taught_count, taught_capacity;
    size_t taught_shown; /* as it was when the round began */
};

void search_lessons_open(struct search *search, struct store_batch *batch); /* once prepared */
void search_lesson_parent(struct attempt *attempt, const struct attempt *parent); /* NULL: none */
void search_lesson_put(struct attempt *attempt, bool kernel, struct store_batch *batch);
void search_lesson_remove(struct attempt *attempt, struct store_batch *batch); /* it is a twin */
void search_lesson_take(struct attempt *attempt); /* in the order of numbers */
void search_lessons_round(struct search *search); /* it begins: what is too much is forgotten */
/* Of a profile, with nothing else of it left in the arena; "" where there is none. */
struct diagnosis search_diagnose(const struct search *search, struct arena *arena,
                                 const char *metrics);
/* What a prompt says of them. */
void search_lessons_say(const struct search *search, const struct search_about *about,
                        const struct diagnosis *found, struct prompt_context *context);
void search_lessons_close(struct search *search);
