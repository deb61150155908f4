/* agents/search/candidate/writing: a model writes a candidate, and mends it.
 *
 *   prompt -> ask (a task of its own; the answer is on disk before it ends) -> code -> front matter
 *
 * An answer without code, or with a front matter that cannot be read, goes back like one that does
 * not compile, at most `repairs` times in all.
 */
#include "agents/ideas/extract.h"
#include "agents/llm/command.h"
#include "agents/search/candidate/candidate.h"
#include "base/mem.h"

#include <string.h>

enum { SHRINK_MOST = 1 }; /* after a provider's word; SHRINK_ALL by our own guess */

void writing_new(struct attempt *attempt, const struct idea *idea, const struct attempt *parent,
                 int64_t sample)
{
    struct writing *writing = MEM_NEW(struct writing);
    writing->scratch = arena_new();
    writing->idea = (struct idea){.title = arena_strdup(attempt->arena, idea->title),
                                  .category = search_constant(idea->category),
                                  .why = arena_strdup(attempt->arena, idea->why),
                                  .parent = arena_strdup(attempt->arena, idea->parent),
                                  .expected = idea->expected};
    writing->parent = parent;
    writing->sample = sample;
    buf_init(&writing->system, PROMPT_BYTES_MAX);
    buf_init(&writing->prompt, PROMPT_BYTES_MAX);
    attempt->writing = writing;
}

static struct search_about about_of(struct attempt *attempt)
{
    return (struct search_about){
        .arena = attempt->writing->scratch,
        .parent = attempt->writing->parent,
        .idea = &attempt->writing->idea,
        .language = search_language(attempt->search, attempt->island, attempt->writing->parent),
        .failure = attempt->writing->failure,
        .diagnostics = attempt->writing->diagnostics,
        .repairs = attempt->record.repairs};
}

/* False while what the prompt quotes is being looked for. */
static bool quoted(struct attempt *attempt)
{
    struct writing *writing = attempt->writing;
    if (!writing->retrieving && !writing->retrieved) {
        const struct search_about about = about_of(attempt);
        writing->retrieving = search_retrieve(attempt->search, &writing->retrieval, &attempt->task,
                                              attempt->record.id, &about);
    } else if (writing->retrieving) {
        writing->retrieving = !writing->retrieval.task.finished;
    }
    writing->retrieved = !writing->retrieving;
    return writing->retrieved;
}

static void put_prompt(struct attempt *attempt)
{
    struct search *search = attempt->search;
    struct writing *writing = attempt->writing;
    const struct search_about about = about_of(attempt);
    struct prompt_context context = search_context_for(search, &writing->retrieval, &about);
    buf_reset(&writing->system);
    buf_reset(&writing->prompt);
    prompt_system_for(search->prompts,
                      writing->failure    ? PROMPT_REPAIR
                      : writing->operates ? PROMPT_OPERATE
                                          : PROMPT_IMPLEMENT,
                      &writing->system);
    if (writing->failure) {
        prompt_repair(search->prompts, &context, &writing->idea,
                      writing->source ? writing->source : "", writing->failure,
                      writing->diagnostics, attempt->record.mended, writing->shrink,
                      &writing->prompt);
        return;
    }
    struct prompt_kernel parent = search_kernel_words(writing->parent);
    size_t count;
    const struct prompt_attempt *history = history_shown(search, &count);
    (writing->operates ? prompt_operate : prompt_implement)(search->prompts, &context, &parent,
                                                            &writing->idea, history, count,
                                                            writing->shrink, &writing->prompt);
}

/* What the model has no room for is left out, step by step; what is too long even then is refused
 * by the engine, which says why. */
static struct completion_request fitting_request(struct attempt *attempt, const struct model *model)
{
    struct writing *writing = attempt->writing;
    struct completion_request request;
    struct err ignored;
    for (;; writing->shrink++) {
        put_prompt(attempt);
        request = (struct completion_request){
            .model = model->wire_name,
            .temperature = search_temperature(attempt->search, model),
            .system = buf_text(&writing->system),
            .prompt = buf_text(&writing->prompt),
            .shared = prompt_shared(buf_text(&writing->prompt)),
            .earlier = writing->told == model && writing->shrink == 0 ? writing->earlier : NULL,
            .max_tokens = writing->max_tokens};
        if (ask_fit(model, &request, &ignored) == 0 || writing->shrink >= SHRINK_ALL)
            return request;
    }
}

static struct draw draw_of(const struct attempt *attempt)
{
    const struct writing *writing = attempt->writing;
    return (struct draw){.asker = attempt->record.id,
                         .purpose = writing->failure ? "repair" : "implement",
                         .number = attempt->record.number,
                         .step = attempt->record.repairs, /* as a resumed run counts, too */
                         .tried = writing->tried};
}

/* At temperature 0 the same words get the same answer: they are asked once for all of an idea's
 * implementations. */
static bool is_certain(const struct model *model)
{
    return model->temperature >= 0 && model->temperature <= 0;
}

/* False where there is nobody who can be asked. */
static bool writing_ask(struct attempt *attempt)
{
    struct search *search = attempt->search;
    struct writing *writing = attempt->writing;
    if (!quoted(attempt))
        return true;
    const struct draw draw = draw_of(attempt);
    const struct model *model = search_pick_model(search, &draw);
    if (!model)
        return false;
    ask_free(&writing->ask);
    writing->operates = agent_is(model);
    writing->ask = (struct ask){
        .site = writing->operates ? agent_begin(attempt, model) : NULL,
        .model = model,
        .request = fitting_request(attempt, model),
        .purpose = draw.purpose,
        .others = search_models(search, false),
        .sample = is_certain(model) ? 0 : writing->sample,
        .step = draw.step,
    };
    writing->asked = true;
    ask_start(search->completions, &writing->ask, &attempt->task, attempt->record.id);
    return true;
}

/* "gave a wrong result: Y[0, 60]: got nan, expected 1.5": what history says of the idea, whatever
 * its repairs make of the source. */
static void note_first_failure(struct attempt *attempt, const char *failure, const char *reason)
{
    static const char wrong[] = "wrong result: ";
    struct candidate_record *record = &attempt->record;
    if (record->first_failure && *record->first_failure)
        return;
    if (strncmp(reason, wrong, sizeof wrong - 1) == 0)
        reason += sizeof wrong - 1;
    record->first_failure =
        arena_printf(attempt->arena, "%s: %.*s", failure, (int)strcspn(reason, "\r\n"), reason);
}

/* The reason names the tensor and the place, the details may not. */
static const char *whole_of(struct arena *arena, const char *reason, const char *details)
{
    size_t length = strlen(reason);
    if (*details == '\0')
        return arena_strdup(arena, reason);
    if (length == 0 || strncmp(details, reason, length) == 0)
        return arena_strdup(arena, details);
    return arena_printf(arena, "%s\n%s", reason, details);
}

bool writing_repair(struct attempt *attempt, const char *failure, const char *reason,
                    const char *details)
{
    struct writing *writing = attempt->writing;
    if (!writing || writing->given || writing->operates ||
        attempt->record.repairs >= attempt->search->options.repairs || attempt->abandoned ||
        search_stopping(attempt->search))
        return false;
    attempt->record.repairs++;
    note_first_failure(attempt, failure, reason);
    writing->failure = failure;
    writing->diagnostics = whole_of(writing->scratch, reason, details);
    writing->asked = writing->retrieved = false;
    writing->tried = 0;
    return true;
}

/* The one that was asked for; without islands of its own an idea may also change the language. */
static const struct language *language_of(struct attempt *attempt, const char *text)
{
    const struct search *search = attempt->search;
    const struct language *chosen[TARGET_FOLDERS_MAX];
    const struct language *wanted = about_of(attempt).language;
    size_t count = search_languages(search, chosen);
    if (wanted == NULL)
        return language_of_text(target_find(search->options.backend), text);
    for (size_t i = 0; strstr(text, wanted->entry) == NULL && i < count; i++)
        if (strstr(text, chosen[i]->entry) != NULL)
            return chosen[i];
    return wanted;
}

/* NULL: it cannot be read. */
static struct arm *read_arm(struct attempt *attempt, const char *code, size_t length,
                            struct err *err)
{
    struct search *search = attempt->search;
    struct arm *arm = ARENA_NEW(attempt->arena, struct arm);
    const char *suffix = language_of(attempt, code)->suffixes[0];
    *arm = (struct arm){.search = search,
                        .name = arena_printf(attempt->arena, "%s%s", attempt->record.id, suffix),
                        .text = code,
                        .length = length,
                        .origin = attempt->record.id,
                        .number = -1,
                        .island = attempt->island};
    if (candidate_parse(search->problem, arm->name, code, length, &arm->candidate, err))
        return NULL;
    hash_format(arm->candidate->hash, arm->source_hash);
    return arm;
}

static void take_arm(struct attempt *attempt, struct arm *arm)
{
    if (attempt->arm)
        candidate_free(attempt->arm->candidate);
    attempt->arm = arm;
    tune_at(arm->candidate, 0, &attempt->tune);
    attempt->record.name = arm->name;
    attempt->record.source = arm->source_hash;
}

/* What a model says before its code, on one line. */
static const char *said_before_code(struct arena *arena, const char *answer)
{
    enum { MOST = 240 };
    const char *fence = strstr(answer, "```");
    size_t length = fence != NULL ? (size_t)(fence - answer) : 0;
    length = length < MOST ? length : MOST;
    while (length > 0 && ((unsigned char)answer[length] & 0xC0) == 0x80) /* no half character */
        length--;
    char *text = arena_strndup(arena, answer, length);
    for (char *at = text; *at != '\0'; at++)
        *at = *at == '`' ? '\'' : (unsigned char)*at < ' ' ? ' ' : *at;
    for (; length > 0 && text[length - 1] == ' '; length--)
        text[length - 1] = '\0';
    return text + strspn(text, " ");
}

/* "- it did not compile: candidate.c:3: ...; then "The header was missing."": whoever mends it next
 * sees what did not do. In the record, so that a run that goes on asks in the same words. */
static void note_mend(struct attempt *attempt, const char *answer)
{
    enum { REASON_MOST = 300, ALL_MOST = 4000 };
    const struct writing *writing = attempt->writing;
    struct candidate_record *record = &attempt->record;
    if (writing->failure == NULL || strlen(record->mended) > ALL_MOST)
        return;
    size_t reason = strcspn(writing->diagnostics, "\r\n");
    record->mended =
        arena_printf(attempt->arena, "%s- it %s: %.*s; then \"%s\"\n", record->mended,
                     writing->failure, (int)(reason < REASON_MOST ? reason : REASON_MOST),
                     writing->diagnostics, said_before_code(attempt->arena, answer));
}

/* The code as an arm of its own; its numbers are the first of each list. */
static int take_code(struct attempt *attempt, struct err *err)
{
    struct writing *writing = attempt->writing;
    const char *code;
    size_t length;
    if (strcmp(writing->ask.completion.finish, "length") == 0) {
        writing->max_tokens = 2 * writing->ask.request.max_tokens;
        return err_set(err, ERR_LIMIT, "the answer was cut off before its end; keep it shorter");
    }
    const char *text = writing->ask.completion.text;
    writing->earlier = ask_turns(attempt->arena, &writing->ask);
    writing->told = writing->ask.model;
    if (extract_code(attempt->arena, text, language_of(attempt, text)->entry, &code, &length, err))
        return -1;
    note_mend(attempt, text);
    writing->source = code;
    struct arm *arm = read_arm(attempt, code, length, err);
    if (!arm)
        return -1;
    take_arm(attempt, arm);
    return 0;
}

/* What the agent ends with is one of the candidates that it had evaluated. */
static enum writing_result take_result(struct attempt *attempt)
{
    struct err err = {0};
    const struct writing *writing = attempt->writing;
    const char *text = writing->ask.completion.text;
    attempt->record.agent = arena_strndup(attempt->arena, text, strcspn(text, "\n"));
    const struct arm *result = agent_result(writing->agent, attempt->record.agent);
    struct arm *arm = NULL;
    if (result)
        arm = read_arm(attempt, arena_strndup(attempt->arena, result->text, result->length),
                       result->length, &err);
    if (arm) {
        take_arm(attempt, arm);
        return WRITING_DONE;
    }
    attempt->record.reason = arena_printf(
        attempt->arena, "its agent ended without a right kernel (%s)", attempt->record.agent);
    return WRITING_FAILED;
}

/* No answer: with a shorter prompt, from another model, or not at all. */
static enum writing_result no_answer(struct attempt *attempt)
{
    struct search *search = attempt->search;
    struct writing *writing = attempt->writing;
    const struct ask *ask = &writing->ask;
    if (ask->err.code == ERR_CANCELLED)
        return WRITING_LEFT;
    if (search_cap_spending(search, ask))
        return WRITING_LEFT;
    bool shorter = ask->fault == FAULT_TOO_LONG && writing->shrink < SHRINK_MOST;
    if (shorter)
        writing->shrink++;
    if (shorter || completions_blocked(search->completions, ask->model)->code)
        return writing_ask(attempt) ? WRITING_WAIT : WRITING_LEFT;
    struct draw draw = draw_of(attempt);
    bool another = ask->moved ||
                   (ask->fault != FAULT_REFUSED && search_pick_another(search, &draw, ask->model));
    writing->tried = draw.tried;
    if (another)
        return writing_ask(attempt) ? WRITING_WAIT : WRITING_LEFT;
    attempt->record.reason = arena_strdup(attempt->arena, ask->err.message);
    if (ask->fault == FAULT_REFUSED)
        completions_note_nothing(ask, ask->err.message);
    return WRITING_FAILED;
}

enum writing_result writing_step(struct attempt *attempt)
{
    struct writing *writing = attempt->writing;
    struct err err = {0};
    if (writing->given)
        return WRITING_DONE;
    if (!writing->asked)
        return writing_ask(attempt) ? WRITING_WAIT : WRITING_LEFT;
    if (writing->operates && agent_step(writing->agent, &writing->ask))
        return WRITING_WAIT;
    if (!writing->ask.task.finished)
        return WRITING_WAIT;
    if (writing->ask.err.code)
        return no_answer(attempt);
    if (writing->operates)
        return take_result(attempt);
    if (take_code(attempt, &err) == 0)
        return WRITING_DONE;
    attempt->record.reason = arena_strdup(attempt->arena, err.message);
    completions_note_nothing(&writing->ask, err.message);
    if (!writing_repair(attempt, "could not be read", err.message, ""))
        return attempt->abandoned || search_stopping(attempt->search) ? WRITING_LEFT
                                                                      : WRITING_FAILED;
    return writing_ask(attempt) ? WRITING_WAIT : WRITING_LEFT;
}

bool writing_is_left(const struct attempt *attempt)
{
    bool awaited = attempt->writing && agent_began(attempt->writing->agent) &&
                   !search_stopping(attempt->search);
    return attempt->writing && !attempt->submitted && !attempt->abandoned && !awaited;
}

bool writing_give(struct attempt *attempt, const char *text, size_t length, struct err *err)
{
    struct arm *arm = read_arm(attempt, arena_strndup(attempt->arena, text, length), length, err);
    attempt->writing->given = true;
    if (!arm)
        return false;
    take_arm(attempt, arm);
    return true;
}

bool writing_recall(struct attempt *attempt, const char *code, size_t length, const char *failure,
                    const char *diagnostics)
{
    struct err ignored;
    struct arm *arm = read_arm(attempt, code, length, &ignored);
    if (!arm)
        return false;
    take_arm(attempt, arm);
    arm->stored = true;
    attempt->writing->source = code;
    attempt->writing->failure = failure;
    attempt->writing->diagnostics = diagnostics;
    return true;
}

const struct attempt *writing_parent(const struct writing *writing)
{
    return writing->parent;
}

const char *writing_failure(const struct writing *writing, const char **diagnostics)
{
    *diagnostics = writing->diagnostics;
    return writing->failure;
}

static bool looks_up(const struct writing *writing)
{
    return writing && writing->retrieving && !writing->retrieval.task.finished;
}

static bool asks(const struct writing *writing)
{
    return writing && writing->asked && !writing->ask.task.finished;
}

bool writing_busy(const struct writing *writing)
{
    return looks_up(writing) || asks(writing) || (writing && agent_busy(writing->agent));
}

void writing_cancel(struct writing *writing)
{
    if (looks_up(writing))
        task_cancel(&writing->retrieval.task);
    if (asks(writing))
        task_cancel(&writing->ask.task);
}

void writing_free(struct writing *writing)
{
    if (!writing)
        return;
    ask_free(&writing->ask);
    agent_free(writing->agent);
    retrieval_free(&writing->retrieval);
    buf_free(&writing->system);
    buf_free(&writing->prompt);
    arena_free(writing->scratch);
    mem_free(writing);
}
