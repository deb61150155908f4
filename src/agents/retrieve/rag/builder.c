#include "agents/retrieve/rag/builder.h"

#include "agents/retrieve/rag/read/source_scan.h"
#include "base/arena.h"
#include "base/hash.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum field { FIELD_TITLE, FIELD_PATH, FIELD_BODY, FIELD_CODE, FIELDS };

static const struct {
    float boost, b, usual; /* usual: words */
} fields[FIELDS] = {
    [FIELD_TITLE] = {3.0f, 0.4f, 4},
    [FIELD_PATH] = {1.5f, 0.4f, 10},
    [FIELD_BODY] = {1.0f, 0.6f, 60},
    [FIELD_CODE] = {0.7f, 0.6f, 60},
};
static const float k1 = 1.6f;
static const float INSIDES_WORTH = 0.65f, DECLARED_WORTH = 0.85f, BARE_WORTH = 0.7f;

static const float kind_counts[] = {
    [WORD_PLAIN] = 1.0f, [WORD_WHOLE] = 1.0f, [WORD_PART] = 1.0f, [WORD_PREFIX] = 0.7f};

struct entry {
    struct term_postings postings; /* first: builder_terms() gives pointers to it */
    struct entry *next;            /* in its slot */
    float counts[FIELDS];
    bool touched;
};

struct index_builder {
    struct words *words;
    struct arena *arena; /* entries and terms; the arrays are of mem_resize() */
    struct entry **slots;
    size_t slot_count; /* a power of two */
    struct entry **entries;
    size_t count, capacity;
    struct entry **touched; /* by the passage being read */
    size_t touched_count, touched_capacity;
    enum field field;
    bool sorted;
};

struct index_builder *builder_new(struct words *words)
{
    struct index_builder *builder = MEM_NEW(struct index_builder);
    builder->words = words;
    builder->arena = arena_new();
    builder->slot_count = 1 << 12;
    builder->slots = mem_array(builder->slot_count, sizeof(struct entry *));
    return builder;
}

void builder_free(struct index_builder *builder)
{
    if (builder == NULL)
        return;
    for (size_t i = 0; i < builder->count; i++) {
        mem_free(builder->entries[i]->postings.ids);
        mem_free(builder->entries[i]->postings.impacts);
    }
    mem_free(builder->entries);
    mem_free(builder->touched);
    mem_free(builder->slots);
    arena_free(builder->arena);
    mem_free(builder);
}

static uint64_t term_hash(const char *term, size_t length)
{
    return hash_checksum(term, length, 0);
}

static void grow_slots(struct index_builder *builder)
{
    size_t count = builder->slot_count * 2;
    struct entry **slots = mem_array(count, sizeof(struct entry *));
    for (size_t i = 0; i < builder->count; i++) {
        struct entry *entry = builder->entries[i];
        size_t slot = term_hash(entry->postings.term, entry->postings.length) & (count - 1);
        entry->next = slots[slot];
        slots[slot] = entry;
    }
    mem_free(builder->slots);
    builder->slots = slots;
    builder->slot_count = count;
}

static void push(struct entry ***items, size_t *count, size_t *capacity, struct entry *entry)
{
    if (*count == *capacity) {
        *capacity = *capacity ? *capacity * 2 : 256;
        *items = mem_resize(*items, *capacity * sizeof(struct entry *));
    }
    (*items)[(*count)++] = entry;
}

static struct entry *find(struct index_builder *builder, const char *term, size_t length)
{
    uint64_t hash = term_hash(term, length);
    struct entry *entry = builder->slots[hash & (builder->slot_count - 1)];
    for (; entry != NULL; entry = entry->next)
        if (entry->postings.length == length && memcmp(entry->postings.term, term, length) == 0)
            return entry;
    if (builder->count >= builder->slot_count)
        grow_slots(builder);
    entry = ARENA_NEW(builder->arena, struct entry);
    entry->postings.term = arena_strndup(builder->arena, term, length);
    entry->postings.length = length;
    entry->next = builder->slots[hash & (builder->slot_count - 1)];
    builder->slots[hash & (builder->slot_count - 1)] = entry;
    push(&builder->entries, &builder->count, &builder->capacity, entry);
    builder->sorted = false;
    return entry;
}

static void count_word(void *context, const char *term, size_t length, enum word_kind kind)
{
    struct index_builder *builder = context;
    struct entry *entry = find(builder, term, length);
    if (!entry->touched) {
        entry->touched = true;
        push(&builder->touched, &builder->touched_count, &builder->touched_capacity, entry);
    }
    entry->counts[builder->field] += kind_counts[kind];
}

static float count_field(struct index_builder *builder, enum field field, const char *text,
                         size_t length)
{
    builder->field = field;
    return (float)words_each(builder->words, text, length, count_word, builder);
}

/* Who comments code writes prose. */
static void count_code(struct index_builder *builder, enum document_kind kind, const char *text,
                       size_t length, float *lengths)
{
    size_t from = 0;
    for (size_t at = 0; kind == DOCUMENT_SOURCE && at + 1 < length;) {
        if (text[at] != '/' || (text[at + 1] != '*' && text[at + 1] != '/')) {
            at++;
            continue;
        }
        size_t end = source_comment_end(text, length, at);
        lengths[FIELD_CODE] += count_field(builder, FIELD_CODE, text + from, at - from);
        lengths[FIELD_BODY] += count_field(builder, FIELD_BODY, text + at, end - at);
        from = at = end;
    }
    lengths[FIELD_CODE] += count_field(builder, FIELD_CODE, text + from, length - from);
}

/* The text outside and inside of the code spans. */
static void count_text(struct index_builder *builder, enum document_kind kind,
                       const struct passage *passage, float *lengths)
{
    size_t at = 0;
    for (size_t i = 0; i < passage->span_count; i++) {
        size_t start = passage->spans[i].start, end = passage->spans[i].end;
        if (start < at || end < start || end > passage->length)
            continue;
        lengths[FIELD_BODY] += count_field(builder, FIELD_BODY, passage->text + at, start - at);
        count_code(builder, kind, passage->text + start, end - start, lengths);
        at = end;
    }
    lengths[FIELD_BODY] +=
        count_field(builder, FIELD_BODY, passage->text + at, passage->length - at);
}

static bool is_all_code(const struct passage *passage)
{
    size_t code = 0;
    for (size_t i = 0; i < passage->span_count; i++)
        code += passage->spans[i].end - passage->spans[i].start;
    return code + 8 >= passage->length; /* 8: newlines between spans */
}

/* Who asks a question is rarely after what a library calls its own insides, and seldom helped by a
 * declaration that nobody wrote a word about. */
static float worth(enum document_kind kind, const struct passage *passage)
{
    static const char *const insides[] = {"detail/",   "/__",    "internal/",       "impl/",
                                          "dispatch/", "agent/", "specializations/"};
    float value = 1;
    if (kind == DOCUMENT_SOURCE)
        value = is_all_code(passage) ? BARE_WORTH : DECLARED_WORTH;
    for (size_t i = 0; i < sizeof insides / sizeof insides[0]; i++)
        if (strstr(passage->path, insides[i]) != NULL)
            return value * INSIDES_WORTH;
    return value;
}

static void add_posting(struct entry *entry, uint32_t id, const float *norms, float value)
{
    struct term_postings *postings = &entry->postings;
    float weight = 0;
    for (int f = 0; f < FIELDS; f++) {
        weight += entry->counts[f] * norms[f];
        entry->counts[f] = 0;
    }
    entry->touched = false;
    if (postings->count == postings->capacity) {
        postings->capacity = postings->capacity ? postings->capacity * 2 : 4;
        postings->ids = mem_resize(postings->ids, postings->capacity * sizeof *postings->ids);
        postings->impacts = mem_resize(postings->impacts, postings->capacity);
    }
    float impact = roundf(255.0f * value * weight / (k1 + weight));
    postings->ids[postings->count] = id;
    postings->impacts[postings->count++] = (uint8_t)(impact < 1 ? 1 : impact > 255 ? 255 : impact);
}

void builder_add(struct index_builder *builder, uint32_t id, enum document_kind kind,
                 const struct passage *passage)
{
    float lengths[FIELDS] = {0}, norms[FIELDS], value = worth(kind, passage);
    lengths[FIELD_TITLE] =
        count_field(builder, FIELD_TITLE, passage->title, strlen(passage->title));
    lengths[FIELD_PATH] = count_field(builder, FIELD_PATH, passage->path, strlen(passage->path));
    count_text(builder, kind, passage, lengths);
    for (int f = 0; f < FIELDS; f++)
        norms[f] = fields[f].boost / (1 - fields[f].b + fields[f].b * lengths[f] / fields[f].usual);
    for (size_t i = 0; i < builder->touched_count; i++)
        add_posting(builder->touched[i], id, norms, value);
    builder->touched_count = 0;
}

static int by_term(const void *a, const void *b)
{
    const struct term_postings *x = *(const struct term_postings *const *)a;
    const struct term_postings *y = *(const struct term_postings *const *)b;
    size_t shorter = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->term, y->term, shorter);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

const struct term_postings *const *builder_terms(struct index_builder *builder, size_t *count)
{
    if (!builder->sorted && builder->count > 0) {
        qsort(builder->entries, builder->count, sizeof *builder->entries, by_term);
        builder->sorted = true;
    }
    *count = builder->count;
    return (const struct term_postings *const *)builder->entries;
}
