/* Queries, and what is chosen of what they find. */
#include "agents/retrieve/retrieve.h"

#include "agents/diagnosis/diagnosis.h"
#include "agents/ideas/novelty.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUERY_BYTES = 400,   /* words past these say little more */
    FOUND_EACH = 12,     /* passages looked at of each query */
    OF_ONE_DOCUMENT = 3, /* passages at most */
    CALM = 3             /* how slowly a passage's worth falls with its rank */
};

/* Of the query's words, by their weights: what has less of them is filler, and nothing is better.
 */
static const double SHARE_LEAST = 0.12;
static const double too_alike = 0.8; /* novelty_likeness() of two passages' headings and begins */

/* ---- queries ---- */

static const char *text_or(const char *text)
{
    return text ? text : "";
}

static void add_query(struct arena *arena, struct retrieve_plan *plan, double weight,
                      const struct buf *text)
{
    if (text->length == 0 || plan->count == RETRIEVE_QUERIES)
        return;
    plan->weights[plan->count] = weight;
    plan->queries[plan->count++] = arena_strdup(arena, buf_text(text));
}

/* What the definition calls: "einsum softmax exp". Names of languages and of this program say
 * nothing of the operation. */
static void put_operators(const char *definition, struct buf *out)
{
    static const char known[] = ",int,float,double,void,for,if,while,sizeof,return,def,class,super,"
                                "forward,init,range,len,array,asarray,tensor,astype,reshape,"
                                "size,shape,view,to,get_inputs,get_init_inputs,print,isinstance,";
    char said[256] = ",";
    for (const char *at = definition; (at = strchr(at, '(')); at++) {
        const char *start = at;
        char name[40];
        while (start > definition && (isalnum((unsigned char)start[-1]) || start[-1] == '_'))
            start--;
        size_t length = (size_t)(at - start);
        if (length < 2 || length > 30)
            continue;
        snprintf(name, sizeof name, ",%.*s,", (int)length, start);
        if (strstr(known, name) || strstr(said, name) || strlen(said) + length + 2 > sizeof said ||
            start[0] == '_')
            continue;
        strcat(said, name + 1);
        buf_addf(out, " %.*s", (int)length, start);
    }
}

/* The operation in words: "matmul matmul: C = A @ B float32", and what its definition calls. */
static void put_problem_words(const struct retrieve_about *about, struct buf *out)
{
    const struct problem *problem = about->problem;
    if (!problem)
        return;
    buf_addf(out, "%s %s %.160s", problem->family, problem->name, text_or(problem->description));
    if (problem->input_count > 0)
        buf_addf(out, " %s", dtype_name(problem->inputs[0].dtype));
    put_operators(text_or(about->definition), out);
}

/* Numbers and names of this source tell an index of manuals nothing: words alone. */
static void put_words(const char *text, size_t most, struct buf *out)
{
    size_t end = out->length + most;
    for (bool blank = true; *text && out->length < end; text++) {
        bool word = isalpha((unsigned char)*text) || *text == '_' || *text == '-';
        if (word)
            buf_add_char(out, *text);
        else if (!blank)
            buf_add_char(out, ' ');
        blank = !word;
    }
    buf_add_char(out, ' ');
}

/* Of a compiler's message the lines that say "error", without the file and line before. */
static void put_message(const char *diagnostics, struct buf *out)
{
    size_t end = out->length + QUERY_BYTES;
    for (const char *line = diagnostics; *line && out->length < end;) {
        size_t length = strcspn(line, "\n");
        const char *error = memmem(line, length, "error: ", 7);
        if (error || line == diagnostics) {
            const char *from = error ? error + 7 : line;
            buf_addf(out, "%.*s ", (int)(length - (size_t)(from - line)), from);
        }
        line += length + (line[length] == '\n');
    }
}

static void plan_limiter(struct arena *arena, const struct retrieve_about *about,
                         struct retrieve_plan *plan, double weight, struct buf *text)
{
    const char *limiter = text_or(about->limiter);
    buf_reset(text);
    if (!*limiter || strcmp(limiter, DIAGNOSIS_UNKNOWN) == 0 ||
        strcmp(limiter, DIAGNOSIS_NONE) == 0)
        return;
    buf_addf(text, "%s %s ", limiter, about->backend);
    put_words(text_or(about->evidence), 160, text);
    add_query(arena, plan, weight, text);
}

static void plan_problem(struct arena *arena, const struct retrieve_about *about,
                         struct retrieve_plan *plan, double weight, struct buf *text)
{
    buf_reset(text);
    put_problem_words(about, text);
    if (text->length > 0)
        buf_addf(text, " %s", about->backend);
    add_query(arena, plan, weight, text);
}

static void plan_idea(struct arena *arena, const struct retrieve_about *about,
                      struct retrieve_plan *plan, double weight, struct buf *text)
{
    buf_reset(text);
    if (!about->title || !*about->title)
        return;
    buf_addf(text, "%s ", about->title);
    put_words(text_or(about->why), 160, text);
    add_query(arena, plan, weight, text);
}

/* What kind of failure it is, in one word. */
static const char *kind_of_failure(const struct retrieve_about *about)
{
    static const struct {
        const char *sign, *kind;
    } kinds[] = {{"wrong", "wrong"}, {"compile", "compile"}, {"read", "form"}, {"work", "crash"}};
    const char *failure = text_or(about->failure);
    if (strstr(text_or(about->diagnostics), "error: "))
        return "compile";
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strstr(failure, kinds[i].sign))
            return kinds[i].kind;
    return "other";
}

void retrieve_plan(struct arena *arena, enum prompt_agent agent, const struct retrieve_about *about,
                   struct retrieve_plan *plan)
{
    const char *limiter = text_or(about->limiter), *category = text_or(about->category);
    *plan = (struct retrieve_plan){.count = 0};
    BUF_LOCAL(text, QUERY_BYTES + 400);
    if (agent == PROMPT_IDEAS) {
        plan->purpose = arena_printf(arena, "ideas %s %s", about->backend,
                                     *limiter ? limiter : DIAGNOSIS_UNKNOWN);
        plan_limiter(arena, about, plan, 1, &text);
        plan_problem(arena, about, plan, 0.8, &text);
    } else if (agent == PROMPT_IMPLEMENT) {
        plan->purpose = arena_printf(arena, "implement %s %s", about->backend, category);
        plan_idea(arena, about, plan, 1, &text);
        plan_problem(arena, about, plan, 0.5, &text);
        plan_limiter(arena, about, plan, 0.4, &text);
    } else {
        plan->purpose = arena_printf(arena, "repair %s %s", about->backend, kind_of_failure(about));
        put_message(text_or(about->diagnostics), &text);
        add_query(arena, plan, 1, &text);
        plan_idea(arena, about, plan, 0.6, &text);
    }
}

/* ---- choosing ---- */

struct found {
    struct rag_passage passage;
    double worth;
    size_t order;
};

static int best_first(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    if (a->worth != b->worth)
        return a->worth > b->worth ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* Ranks of several queries compare, scores do not: each adds what its weight gives to that rank. */
static size_t join(struct found *all, size_t count, const struct rag_passage *items, size_t found,
                   double weight, const char *backend)
{
    size_t rank = 0;
    for (size_t i = 0; i < found; i++) {
        size_t at = 0;
        if (rank == FOUND_EACH)
            break;
        if (!retrieve_is_for(&items[i], backend) || items[i].share < SHARE_LEAST)
            continue;
        while (at < count && all[at].passage.id != items[i].id)
            at++;
        if (at == count)
            all[count++] = (struct found){.passage = items[i], .order = at};
        all[at].worth += weight / (double)(CALM + rank++);
    }
    return count;
}

static bool repeats(const struct rag_passage *passage, const struct rag_passage *chosen,
                    size_t count)
{
    size_t same = 0;
    char begin[200], other[200];
    snprintf(begin, sizeof begin, "%s %.120s", passage->title, passage->text);
    for (size_t i = 0; i < count; i++) {
        same += strcmp(passage->source, chosen[i].source) == 0;
        snprintf(other, sizeof other, "%s %.120s", chosen[i].title, chosen[i].text);
        if (novelty_likeness(begin, other) >= too_alike)
            return true;
    }
    return same >= OF_ONE_DOCUMENT;
}

int retrieve_passages(struct rag *rag, const char *backend, const struct retrieve_plan *plan,
                      size_t tokens, struct arena *arena, struct rag_passage **items, size_t *count,
                      struct err *err)
{
    struct found *all = mem_array(RETRIEVE_QUERIES * FOUND_EACH * 2, sizeof *all);
    size_t joined = 0, left = tokens;
    int failed = 0;
    *items = arena_array(arena, RETRIEVE_MOST, sizeof **items);
    *count = 0;
    for (size_t i = 0; i < plan->count && !failed; i++) {
        struct rag_passage *found;
        size_t found_count;
        const struct rag_query query = {
            .text = plan->queries[i],
            .most = FOUND_EACH * 6, /* many are for other backends */
            .purpose = plan->purpose,
            .vector = plan->vectors ? plan->vectors + i * plan->dimensions : NULL,
            .dimensions = plan->dimensions};
        failed = rag_search(rag, &query, arena, &found, &found_count, err);
        if (!failed)
            joined = join(all, joined, found, found_count, plan->weights[i], backend);
    }
    qsort(all, joined, sizeof *all, best_first);
    for (size_t i = 0; i < joined && *count < RETRIEVE_MOST && !failed; i++) {
        const struct rag_passage *passage = &all[i].passage;
        if (passage->tokens > left || repeats(passage, *items, *count))
            continue;
        left -= passage->tokens;
        (*items)[(*count)++] = *passage;
    }
    mem_free(all);
    return failed;
}
