#include "agents/retrieve/rag/gather.h"

#include "agents/retrieve/rag/source_scan.h"
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
    struct gathered gathered; /* first: gather_terms() gives pointers to it */
    struct entry *next;       /* in its slot */
    float counts[FIELDS];
    bool touched;
};

struct gather {
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

struct gather *gather_new(struct words *words)
{
    struct gather *gather = MEM_NEW(struct gather);
    gather->words = words;
    gather->arena = arena_new();
    gather->slot_count = 1 << 12;
    gather->slots = mem_array(gather->slot_count, sizeof(struct entry *));
    return gather;
}

void gather_free(struct gather *gather)
{
    if (gather == NULL)
        return;
    for (size_t i = 0; i < gather->count; i++) {
        mem_free(gather->entries[i]->gathered.ids);
        mem_free(gather->entries[i]->gathered.impacts);
    }
    mem_free(gather->entries);
    mem_free(gather->touched);
    mem_free(gather->slots);
    arena_free(gather->arena);
    mem_free(gather);
}

static uint64_t term_hash(const char *term, size_t length)
{
    return hash_checksum(term, length, 0);
}

static void grow_slots(struct gather *gather)
{
    size_t count = gather->slot_count * 2;
    struct entry **slots = mem_array(count, sizeof(struct entry *));
    for (size_t i = 0; i < gather->count; i++) {
        struct entry *entry = gather->entries[i];
        size_t slot = term_hash(entry->gathered.term, entry->gathered.length) & (count - 1);
        entry->next = slots[slot];
        slots[slot] = entry;
    }
    mem_free(gather->slots);
    gather->slots = slots;
    gather->slot_count = count;
}

static void push(struct entry ***items, size_t *count, size_t *capacity, struct entry *entry)
{
    if (*count == *capacity) {
        *capacity = *capacity ? *capacity * 2 : 256;
        *items = mem_resize(*items, *capacity * sizeof(struct entry *));
    }
    (*items)[(*count)++] = entry;
}

static struct entry *find(struct gather *gather, const char *term, size_t length)
{
    uint64_t hash = term_hash(term, length);
    struct entry *entry = gather->slots[hash & (gather->slot_count - 1)];
    for (; entry != NULL; entry = entry->next)
        if (entry->gathered.length == length && memcmp(entry->gathered.term, term, length) == 0)
            return entry;
    if (gather->count >= gather->slot_count)
        grow_slots(gather);
    entry = ARENA_NEW(gather->arena, struct entry);
    entry->gathered.term = arena_strndup(gather->arena, term, length);
    entry->gathered.length = length;
    entry->next = gather->slots[hash & (gather->slot_count - 1)];
    gather->slots[hash & (gather->slot_count - 1)] = entry;
    push(&gather->entries, &gather->count, &gather->capacity, entry);
    gather->sorted = false;
    return entry;
}

static void count_word(void *context, const char *term, size_t length, enum word_kind kind)
{
    struct gather *gather = context;
    struct entry *entry = find(gather, term, length);
    if (!entry->touched) {
        entry->touched = true;
        push(&gather->touched, &gather->touched_count, &gather->touched_capacity, entry);
    }
    entry->counts[gather->field] += kind_counts[kind];
}

static float count_field(struct gather *gather, enum field field, const char *text, size_t length)
{
    gather->field = field;
    return (float)words_each(gather->words, text, length, count_word, gather);
}

/* Who comments code writes prose. */
static void count_code(struct gather *gather, enum document_kind kind, const char *text,
                       size_t length, float *lengths)
{
    size_t from = 0;
    for (size_t at = 0; kind == DOCUMENT_SOURCE && at + 1 < length;) {
        if (text[at] != '/' || (text[at + 1] != '*' && text[at + 1] != '/')) {
            at++;
            continue;
        }
        size_t end = source_comment_end(text, length, at);
        lengths[FIELD_CODE] += count_field(gather, FIELD_CODE, text + from, at - from);
        lengths[FIELD_BODY] += count_field(gather, FIELD_BODY, text + at, end - at);
        from = at = end;
    }
    lengths[FIELD_CODE] += count_field(gather, FIELD_CODE, text + from, length - from);
}

/* The text outside and inside of the code spans. */
static void count_text(struct gather *gather, enum document_kind kind,
                       const struct passage *passage, float *lengths)
{
    size_t at = 0;
    for (size_t i = 0; i < passage->span_count; i++) {
        size_t start = passage->spans[i].start, end = passage->spans[i].end;
        if (start < at || end < start || end > passage->length)
            continue;
        lengths[FIELD_BODY] += count_field(gather, FIELD_BODY, passage->text + at, start - at);
        count_code(gather, kind, passage->text + start, end - start, lengths);
        at = end;
    }
    lengths[FIELD_BODY] +=
        count_field(gather, FIELD_BODY, passage->text + at, passage->length - at);
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
    struct gathered *gathered = &entry->gathered;
    float weight = 0;
    for (int f = 0; f < FIELDS; f++) {
        weight += entry->counts[f] * norms[f];
        entry->counts[f] = 0;
    }
    entry->touched = false;
    if (gathered->count == gathered->capacity) {
        gathered->capacity = gathered->capacity ? gathered->capacity * 2 : 4;
        gathered->ids = mem_resize(gathered->ids, gathered->capacity * sizeof *gathered->ids);
        gathered->impacts = mem_resize(gathered->impacts, gathered->capacity);
    }
    float impact = roundf(255.0f * value * weight / (k1 + weight));
    gathered->ids[gathered->count] = id;
    gathered->impacts[gathered->count++] = (uint8_t)(impact < 1 ? 1 : impact > 255 ? 255 : impact);
}

void gather_passage(struct gather *gather, uint32_t id, enum document_kind kind,
                    const struct passage *passage)
{
    float lengths[FIELDS] = {0}, norms[FIELDS], value = worth(kind, passage);
    lengths[FIELD_TITLE] = count_field(gather, FIELD_TITLE, passage->title, strlen(passage->title));
    lengths[FIELD_PATH] = count_field(gather, FIELD_PATH, passage->path, strlen(passage->path));
    count_text(gather, kind, passage, lengths);
    for (int f = 0; f < FIELDS; f++)
        norms[f] = fields[f].boost / (1 - fields[f].b + fields[f].b * lengths[f] / fields[f].usual);
    for (size_t i = 0; i < gather->touched_count; i++)
        add_posting(gather->touched[i], id, norms, value);
    gather->touched_count = 0;
}

static int by_term(const void *a, const void *b)
{
    const struct gathered *x = *(const struct gathered *const *)a;
    const struct gathered *y = *(const struct gathered *const *)b;
    size_t shorter = x->length < y->length ? x->length : y->length;
    int order = memcmp(x->term, y->term, shorter);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

const struct gathered *const *gather_terms(struct gather *gather, size_t *count)
{
    if (!gather->sorted && gather->count > 0) {
        qsort(gather->entries, gather->count, sizeof *gather->entries, by_term);
        gather->sorted = true;
    }
    *count = gather->count;
    return (const struct gathered *const *)gather->entries;
}
