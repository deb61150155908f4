#include "cli/report/fill.h"

#include "agents/llm/completion_record.h"
#include "base/mem.h"
#include "cli/find/history.h"
#include "cli/print/run_options.h"
#include "cli/print/run_words.h"
#include "cli/tune/facts.h"
#include "eval/problem/problem.h"
#include "report/words.h"

#include <stdlib.h>
#include <string.h>

enum { ISLANDS_MOST = 64 }; /* --islands; a record can say anything */

static void fill_candidates(struct store *store, struct arena *arena, const struct run_record *run,
                            struct report *report)
{
    struct candidate_record *records;
    struct err ignored;
    size_t count;
    if (history_candidates(store, arena, run->id, &records, &count, &ignored))
        return;
    struct report_candidate *rows = arena_array(arena, count + 1, sizeof *rows);
    for (size_t i = 0; i < count; i++) {
        struct idea_record idea = {.title = "", .why = ""};
        const struct candidate_record *c = &records[i];
        if (!*c->verdict || (*c->duplicate_of && strcmp(c->id, run->best) != 0))
            continue; /* never evaluated */
        if (history_idea(store, arena, c->idea, &idea, &ignored))
            idea.why = "";
        rows[report->count++] =
            (struct report_candidate){.id = c->id,
                                      .parent = c->parent,
                                      .idea = idea.why ? idea.why : "",
                                      .source = run_words_source(arena, c),
                                      .verdict = c->verdict,
                                      .reason = c->reason,
                                      .time_ns = strcmp(c->verdict, "kernel") == 0 ? c->time_ns : 0,
                                      .speedup = strcmp(c->verdict, "kernel") == 0 ? c->speedup : 0,
                                      .low = c->speedup_low,
                                      .high = c->speedup_high,
                                      .champion = strcmp(c->id, run->best) == 0};
        if (rows[report->count - 1].champion) {
            report->source = history_source(store, arena, c);
            report->language = language_of_file(c->name);
        }
    }
    report->candidates = rows;
}

static bool is_refused(const struct report_candidate *candidate)
{
    return strcmp(candidate->verdict, "kernel") != 0 && strcmp(candidate->verdict, "dropped") != 0;
}

/* A reason without what differs from one to the next: "wrong result, not written" of "wrong result:
 * Y[0, 60]: got nan, ... (7 of 427 wrong; not written) at M=7"; of others the first part, numbers
 * left out. */
static const char *kind_of_reason(struct arena *arena, const struct report_candidate *candidate)
{
    enum { MOST = 90 };
    static const char wrong[] = "wrong result";
    const char *reason = *candidate->reason ? candidate->reason : candidate->verdict;
    size_t length = strcspn(reason, "\r\n");
    const char *open = memrchr(reason, '(', length), *close = open ? strchr(open, ')') : NULL;
    if (strncmp(reason, wrong, sizeof wrong - 1) == 0 && close && close < reason + length) {
        const char *pattern = memrchr(open, ';', (size_t)(close - open));
        pattern = pattern ? pattern + 1 : open + 1;
        pattern += strspn(pattern, " ");
        return arena_printf(arena, "%s, %.*s", wrong, (int)(close - pattern), pattern);
    }
    char *text = arena_strndup(arena, reason, length < MOST ? length : MOST);
    size_t to = 0;
    for (size_t at = 0; text[at] != '\0'; at++) {
        bool digit = text[at] >= '0' && text[at] <= '9';
        if (digit && to > 0 && text[to - 1] == '#')
            continue;
        text[to++] = digit ? '#' : text[at];
    }
    text[to] = '\0';
    return text;
}

static int most_first(const void *a, const void *b)
{
    const struct report_refusal *x = a, *y = b;
    return x->count != y->count ? (x->count > y->count ? -1 : 1) : strcmp(x->why, y->why);
}

static void fill_refusals(struct arena *arena, struct report *report)
{
    struct report_refusal *all = arena_array(arena, report->count + 1, sizeof *all);
    size_t count = 0;
    for (size_t i = 0; i < report->count; i++) {
        const struct report_candidate *candidate = &report->candidates[i];
        if (!is_refused(candidate))
            continue;
        const char *why = kind_of_reason(arena, candidate);
        size_t at = 0;
        while (at < count && strcmp(all[at].why, why) != 0)
            at++;
        if (at == count)
            all[count++] = (struct report_refusal){.why = why, .first = candidate->id};
        all[at].count++;
    }
    qsort(all, count, sizeof *all, most_first);
    report->refusals = all;
    report->refusal_count = count;
}

static const char *dims_words(struct arena *arena, const struct run_record *run, struct report *out)
{
    struct problem *problem;
    struct err ignored;
    struct buf text;
    if (problem_load(run->problem_file, &problem, &ignored))
        return "";
    buf_init(&text, 1 << 16);
    for (size_t i = 0; i < problem->shapes[0].count; i++)
        buf_addf(&text, "%s%s %lld", i ? ", " : "", problem->shapes[0].name[i],
                 (long long)problem->shapes[0].number[i]);
    const char *words = arena_strdup(arena, buf_text(&text));
    const char *description = problem->description ? problem->description : "";
    size_t length = strlen(description);
    while (length > 0 && description[length - 1] == '\n') /* YAML's own, of a folded text */
        length--;
    out->description = arena_strndup(arena, description, length);
    buf_free(&text);
    problem_free(problem);
    return words;
}

/* ---- prompts and answers ---- */

struct asking {
    struct arena *arena;
    const char *run, *asker; /* of the completion at hand: the first of this run that asked it */
    const char *purpose;
    struct report_answer *answers;
    size_t count, most;
};

static void note_use(void *context, const struct completion_use *use)
{
    struct asking *asking = context;
    if (asking->asker == NULL && strcmp(use->run, asking->run) == 0) {
        asking->asker = arena_strdup(asking->arena, use->asker);
        asking->purpose = arena_strdup(asking->arena, use->purpose);
    }
}

static const char *prompt_text(struct arena *arena, const struct value *request)
{
    return arena_printf(arena, "%s\n\n%s", value_text(request, "system", ""),
                        value_text(request, "prompt", ""));
}

static bool note_completion(void *context, const char *key, const char *value, size_t length)
{
    struct asking *asking = context;
    struct arena *own = arena_new();
    struct value *root;
    struct err ignored;
    (void)key;
    asking->asker = NULL;
    if (value_parse_json(own, "completion", value, length, &root, &ignored) == 0)
        completion_uses(root, note_use, asking);
    if (asking->asker != NULL) {
        const struct value *answer = value_get(root, "answer");
        MEM_MORE(asking->answers, asking->count, asking->most);
        asking->answers[asking->count++] = (struct report_answer){
            .asker = asking->asker,
            .purpose = asking->purpose,
            .model = arena_strdup(asking->arena, value_text(root, "model", "")),
            .prompt = prompt_text(asking->arena, value_get(root, "request")),
            .answer = arena_strdup(asking->arena, value_text(answer, "text", "")),
            .tokens =
                value_int(answer, "prompt_tokens", 0) + value_int(answer, "completion_tokens", 0)};
    }
    arena_free(own);
    return true;
}

static int by_asker(const void *a, const void *b)
{
    return strcmp(((const struct report_answer *)a)->asker,
                  ((const struct report_answer *)b)->asker);
}

static void fill_rows(struct store *store, struct arena *arena, const struct run_record *run,
                      struct report *report)
{
    const struct kernel_query query = {
        .run = run->id, .code = true, .evaluation = true, .search = true};
    struct asking asking = {.arena = arena, .run = run->id};
    struct kernel_row *rows = NULL;
    struct err ignored;
    if (kernels_read(store, arena, &query, &rows, &report->row_count, &ignored))
        report->row_count = 0;
    report->rows = rows;
    report->against = run->baseline;
    for (size_t i = 0; i < report->row_count; i++)
        if (rows[i].correct) {
            report->against = rows[i].baseline;
            break;
        }
    if (run->requests == 0 ||
        store_scan(store, STORE_COMPLETIONS, "", note_completion, &asking, &ignored))
        asking.count = 0;
    struct report_answer *answers = arena_array(arena, asking.count + 1, sizeof *answers);
    if (asking.count > 0)
        memcpy(answers, asking.answers, asking.count * sizeof *answers);
    qsort(answers, asking.count, sizeof *answers, by_asker);
    mem_free(asking.answers);
    report->answers = answers;
    report->answer_count = asking.count;
}

/* The command that begins a run like it. */
static const char *again(struct arena *arena, const struct run_record *run, const char *options)
{
    const char *spec = strstr(run->problem_file, "/spec.yaml");
    int folder = spec ? (int)(spec - run->problem_file) : (int)strlen(run->problem_file);
    return arena_printf(arena, "twagent %s %.*s%s%s%s", tune_is(run) ? "tune" : "run", folder,
                        run->problem_file, spec ? spec + strlen("/spec.yaml") : "",
                        strncmp(options, "--", 2) == 0 ? " " : "",
                        strncmp(options, "--", 2) == 0 ? options : "");
}

static void fill_islands(struct arena *arena, struct report *report)
{
    size_t most = 0;
    for (size_t i = 0; i < report->row_count; i++)
        if (report->rows[i].island >= 0 && report->rows[i].island < ISLANDS_MOST)
            most = (size_t)report->rows[i].island > most ? (size_t)report->rows[i].island : most;
    if (most == 0)
        return;
    struct report_island *islands = arena_array(arena, most + 1, sizeof *islands);
    for (size_t i = 0; i <= most; i++)
        islands[i].number = (int64_t)i;
    for (size_t i = 0; i < report->row_count; i++) {
        const struct kernel_row *row = &report->rows[i];
        if (row->island < 0 || row->island >= ISLANDS_MOST)
            continue;
        struct report_island *island = &islands[row->island];
        if (*row->duplicate_of && !row->champion)
            continue;
        island->evaluated++;
        island->kernels += row->correct;
        if (row->correct && (!island->best || row->speedup_low > island->best->speedup_low))
            island->best = row;
    }
    report->islands = islands;
    report->island_count = most + 1;
}

void report_fill(struct store *store, struct arena *arena, const struct run_record *run,
                 bool problem, struct report *report)
{
    char started[32];
    struct report_pause *pauses;
    const char **asked;
    const struct spending spending = run_spending(store, arena, run->id);
    words_date(run->started_ms, started);
    *report = (struct report){.run = run->id,
                              .problem = run->problem,
                              .description = "",
                              .definition = run->definition,
                              .started = arena_strdup(arena, started),
                              .outcome = run_words_outcome(arena, run),
                              .final = *run->best && history_is_final(store, arena, run->best),
                              .command = run_options_line(arena, run),
                              .elapsed_ms = run->elapsed_ms,
                              .lane_busy = run->lane_busy,
                              .best = *run->best ? run->best : NULL};
    report->stopped = run_words_end(arena, run);
    report->models = run_words_models(arena, run);
    report->spent = run_words_spent(arena, run, &spending);
    report->micro_dollars = spending.micro_dollars;
    report->asked_count = run_words_asked(arena, run, &asked);
    report->asked = asked;
    history_pauses(arena, run, &pauses, &report->pause_count);
    report->pauses = pauses;
    report->dims = problem ? dims_words(arena, run, report) : "";
    fill_candidates(store, arena, run, report);
    fill_refusals(arena, report);
    if (*run->best)
        report->evaluation = history_evaluation(store, arena, run->best);
    report->resume = run_words_resume(arena, run);
    report->again = again(arena, run, report->command);
    fill_rows(store, arena, run, report);
    fill_islands(arena, report);
    struct tuning *tuning = arena_array(arena, 1, sizeof *tuning);
    struct err ignored;
    if (tune_is(run) && tune_facts(store, arena, run, problem, tuning, &ignored) == 0)
        report->tuning = tuning;
}
