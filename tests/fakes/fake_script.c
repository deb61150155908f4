/* fake_provider: which request meets which fault.
 *
 * The script holds a line for each chat request, in order: NAME [key=value]...; a line with
 * times=N stands for N requests, times=0 for all that follow; after the last line all is well. With
 * --fail-rate its lines are a pool instead, drawn from at random by the seed, the request's text
 * and how often that was asked: the order in which requests arrive changes nothing. */
#include "fake_provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAULTS_MOST = 256, STEPS = 7 };

static const char *const step_names[STEPS] = {"upload", "create", "look", "fetch",
                                              "cancel", "list",   "end"};

static struct script {
    struct fault faults[FAULTS_MOST];
    size_t length, at;
} script, embeddings, steps[STEPS];
static double fail_rate;
static uint64_t seed;

static const char *const usual_pool[] = {
    "status code=429 text=0",
    "status code=429 ms=300",
    "status code=500",
    "status code=502",
    "status code=503 text=0",
    "status code=529",
    "status code=408",
    "reset after=0",
    "reset after=600",
    "close after=600",
    "stall after=600",
    "truncate",
    "garble",
    "error code=529",
    "empty",
    "null",
    "refuse",
    "length",
    "drip",
    "pings",
    "usage text=missing",
    "usage text=negative",
    "bytes",
};

static _Noreturn void refuse(const char *what, const char *detail)
{
    fprintf(stderr, "fake_provider: %s: %s\n", what, detail);
    for (const struct fault_type *type = fault_types; type->name != NULL; type++)
        fprintf(stderr, "  %-9s %s\n", type->name, type->help);
    exit(2);
}

static void set_key(struct fault *fault, const char *word)
{
    static const struct {
        const char *name;
        size_t offset;
    } numbers[] = {
        {"code", offsetof(struct fault, code)},   {"after", offsetof(struct fault, after)},
        {"times", offsetof(struct fault, times)}, {"ms", offsetof(struct fault, ms)},
        {"date", offsetof(struct fault, date)},   {"delay", offsetof(struct fault, delay)}};
    const char *value = strchr(word, '=');
    if (value == NULL)
        refuse("expected key=value", word);
    size_t length = (size_t)(value++ - word);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strlen(numbers[i].name) != length || strncmp(numbers[i].name, word, length) != 0)
            continue;
        *(long *)(void *)((char *)fault + numbers[i].offset) = strtol(value, NULL, 10);
        return;
    }
    if (strncmp(word, "text=", 5) == 0)
        snprintf(fault->text, sizeof fault->text, "%s", value);
    else if (strncmp(word, "kind=", 5) == 0)
        snprintf(fault->kind, sizeof fault->kind, "%s", value);
    else
        refuse("unknown key", word);
}

static void add(struct script *to, const char *line)
{
    char copy[512], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", line);
    const char *name = strtok_r(copy, " \t\n", &rest);
    if (name == NULL || name[0] == '#')
        return;
    if (to->length == FAULTS_MOST)
        refuse("too many lines", line);
    struct fault *fault = &to->faults[to->length++];
    *fault = (struct fault){.code = 500, .times = 1, .ms = -1};
    for (const struct fault_type *type = fault_types; type->name != NULL; type++) {
        if (strcmp(name, type->name) == 0)
            fault->type = type;
    }
    if (fault->type == NULL)
        refuse("unknown fault", name);
    for (const char *word; (word = strtok_r(NULL, " \t\n", &rest)) != NULL;)
        set_key(fault, word);
}

void script_add(const char *line)
{
    add(&script, line);
}

void script_add_embedding(const char *line)
{
    add(&embeddings, line);
}

static struct script *step_of(const char *name)
{
    for (size_t i = 0; i < STEPS; i++)
        if (strncmp(name, step_names[i], strlen(step_names[i])) == 0)
            return &steps[i];
    refuse("unknown step", name);
}

void script_add_batch(const char *line)
{
    add(step_of(line), line + strcspn(line, " "));
}

void script_init(const struct options *options)
{
    seed = (uint64_t)options->seed;
    fail_rate = options->fail_rate != NULL ? strtod(options->fail_rate, NULL) : 0;
    if (options->script != NULL) {
        char *text = bytes_read_file(options->script), *rest = NULL;
        if (text == NULL)
            refuse("cannot read", options->script);
        for (char *line = strtok_r(text, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest))
            script_add(line);
        free(text);
    }
    bool usual = fail_rate > 0 && script.length == 0;
    for (size_t i = 0; usual && i < sizeof usual_pool / sizeof *usual_pool; i++)
        script_add(usual_pool[i]);
}

static const struct fault *next_of(struct script *lines)
{
    static struct fault well;
    well.type = &fault_types[0];
    if (lines->at == lines->length)
        return &well;
    struct fault *fault = &lines->faults[lines->at];
    if (fault->times > 0 && --fault->times == 0)
        lines->at++;
    return fault;
}

const struct fault *script_batch(const char *step)
{
    return next_of(step_of(step));
}

const struct fault *script_next(const struct chat *chat, unsigned attempt)
{
    static struct fault well;
    well.type = &fault_types[0];
    struct script *lines = chat->format == &format_embeddings ? &embeddings : &script;
    if (fail_rate > 0 && lines == &script) {
        uint64_t draw = bytes_hash(seed ^ chat->hash, &attempt, sizeof attempt);
        bool fails = (double)(draw % 1000000) < fail_rate * 1000000;
        return fails && lines->length > 0 ? &lines->faults[draw / 1000000 % lines->length] : &well;
    }
    return next_of(lines);
}
