/* twagent profile PROBLEM FILE: what holds a kernel back, as the next prompt would be told. */
#include "agents/diagnosis/diagnosis.h"
#include "cli/eval/eval.h"
#include "cli/eval/profile_print.h"
#include "cli/options/command.h"
#include "cli/print/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where it is no kernel nothing was profiled. */
static void say(const struct evaluation *evaluation, const char *facts, FILE *out)
{
    if (evaluation->verdict == VERDICT_KERNEL)
        profile_print(evaluation, facts, out);
    else
        print_evaluation(evaluation, out);
}

static void print_json(const struct evaluation *evaluation, const char *facts)
{
    ARENA_LOCAL(arena);
    struct diagnosis found = diagnosis_of(arena, evaluation->metrics, facts);
    JSON_LOCAL(json, text, 64 << 20);
    json_object(&json);
    json_put_object(&json, "diagnosis");
    json_put_text(&json, "limiter", found.limiter);
    json_put_text(&json, "place", found.place);
    json_put_text(&json, "evidence", found.evidence);
    json_put_text(&json, "categories", found.categories);
    json_object_end(&json);
    json_key(&json, "evaluation");
    evaluation_to_json(evaluation, &json);
    struct words words;
    say(evaluation, facts, words_begin(&words));
    words_end(&words, &json);
    json_object_end(&json);
    printf("%s\n", buf_text(&text));
}

static void print(void *context, const struct evaluation *evaluation, const struct value *facts,
                  bool as_json)
{
    (void)context;
    ARENA_LOCAL(arena);
    const char *text = value_json(facts, arena);
    if (as_json)
        print_json(evaluation, text);
    else
        say(evaluation, text, stdout);
}

int command_profile(const struct settings *settings, const char *const *arguments, size_t count)
{
    struct settings chosen = *settings;
    chosen.effort = "search"; /* all checks, and time enough for a place under the roofs */
    chosen.profile = true;
    chosen.sanitize = chosen.cachegrind = false;
    chosen.sweep = -1;
    chosen.until = chosen.against = NULL;
    return eval_run(&chosen, arguments, count, print);
}
