/* agents/search_writing: a model writes a candidate, and mends it.
 *
 *   prompt -> ask (a task of its own; the answer is on disk before it ends) -> code -> front matter
 *
 * An answer without code, or with a front matter that cannot be read, goes back like one that does
 * not compile, at most `repairs` times in all.
 */
#include "agents/extract.h"
#include "agents/search_private.h"
#include "base/mem.h"

#include <string.h>

static struct prompt_kernel parent_words(const struct attempt *parent)
{
    if (!parent)
        return (struct prompt_kernel){.id = ""};
    return (struct prompt_kernel){.id = parent->record.id,
                                  .name = parent->arm->name,
                                  .source = parent->arm->text,
                                  .tune = parent->record.tune,
                                  .metrics = parent->request.evaluation.metrics,
                                  .time_ns = parent->record.time_ns,
                                  .speedup = parent->record.speedup,
                                  .speedup_low = parent->record.speedup_low,
                                  .speedup_high = parent->record.speedup_high};
}

static void writing_ask(struct attempt *attempt)
{
    struct search *search = attempt->search;
    struct writing *writing = attempt->writing;
    buf_reset(&writing->system);
    buf_reset(&writing->prompt);
    prompt_system(search->prompts, &writing->system);
    if (writing->failure) {
        prompt_repair(search->prompts, &search->context, &writing->idea,
                      writing->source ? writing->source : "", writing->failure,
                      writing->diagnostics, 0, &writing->prompt);
    } else {
        struct prompt_kernel parent = parent_words(writing->parent);
        prompt_implement(search->prompts, &search->context, &parent, &writing->idea,
                         search->history, search->history_count, 0, &writing->prompt);
    }
    ask_free(&writing->ask);
    writing->ask = (struct ask){
        .model = models_pick(search->options.idea_models, 0),
        .request = {.system = buf_text(&writing->system),
                    .prompt = buf_text(&writing->prompt),
                    .max_tokens = writing->max_tokens},
        .purpose = writing->failure ? "repair" : "implement",
        .sample = writing->sample,
    };
    writing->asked = true;
    ask_start(search->completions, &writing->ask, &attempt->task, attempt->record.id);
}

bool writing_repair(struct attempt *attempt, const char *failure, const char *diagnostics)
{
    struct writing *writing = attempt->writing;
    if (!writing || attempt->record.repairs >= attempt->search->options.repairs ||
        attempt->abandoned || search_stopping(attempt->search))
        return false;
    attempt->record.repairs++;
    writing->failure = failure;
    writing->diagnostics = arena_strdup(attempt->arena, diagnostics);
    writing->asked = false;
    return true;
}

/* The code as an arm of its own; its numbers are the first of each list. */
static int take_code(struct attempt *attempt, struct err *err)
{
    struct search *search = attempt->search;
    struct writing *writing = attempt->writing;
    struct arm *arm = ARENA_NEW(attempt->arena, struct arm);
    const char *code;
    size_t length;
    if (strcmp(writing->ask.completion.finish, "length") == 0) {
        writing->max_tokens = 2 * writing->ask.request.max_tokens;
        return err_set(err, ERR_LIMIT, "the answer was cut off before its end; keep it shorter");
    }
    if (extract_code(attempt->arena, writing->ask.completion.text, "kernel", &code, &length, err))
        return -1;
    writing->source = code;
    bool cxx = strstr(code, "extern \"C\"") != NULL;
    *arm = (struct arm){
        .search = search,
        .name = arena_printf(attempt->arena, "%s.%s", attempt->record.id, cxx ? "cc" : "c"),
        .text = code,
        .length = length,
        .origin = attempt->record.id,
        .number = -1};
    if (candidate_parse(search->problem, arm->name, code, length, &arm->candidate, err))
        return -1;
    if (attempt->arm)
        candidate_free(attempt->arm->candidate);
    hash_format(arm->candidate->hash, arm->source_hash);
    attempt->arm = arm;
    tune_at(arm->candidate, 0, &attempt->tune);
    attempt->record.name = arm->name;
    attempt->record.source = arm->source_hash;
    return 0;
}

enum writing_result writing_step(struct attempt *attempt)
{
    struct writing *writing = attempt->writing;
    struct err err = {0};
    if (!writing->asked) {
        writing_ask(attempt);
        return WRITING_WAIT;
    }
    if (!writing->ask.task.finished)
        return WRITING_WAIT;
    if (writing->ask.err.code) {
        attempt->record.reason = arena_strdup(attempt->arena, writing->ask.err.message);
        return WRITING_FAILED;
    }
    if (take_code(attempt, &err) == 0)
        return WRITING_DONE;
    attempt->record.reason = arena_strdup(attempt->arena, err.message);
    if (!writing_repair(attempt, "could not be read", err.message))
        return WRITING_FAILED;
    writing_ask(attempt);
    return WRITING_WAIT;
}

void writing_free(struct writing *writing)
{
    if (!writing)
        return;
    ask_free(&writing->ask);
    buf_free(&writing->system);
    buf_free(&writing->prompt);
    mem_free(writing);
}
