/* Any bytes are a document of every kind (the first byte says which): its passages lie within their
 * limits, their code spans within them, and all words of them can be gathered and packed. */
#include "fuzz.h"

#include "agents/retrieve/rag/builder.h"
#include "agents/retrieve/rag/query/postings.h"
#include "agents/retrieve/rag/read/read.h"
#include "agents/retrieve/rag/records.h"

#include <string.h>

static void check_passage(const struct passage *passage)
{
    uint32_t at = 0;
    REQUIRE(passage->length > 0 && strlen(passage->text) == passage->length);
    REQUIRE(strlen(passage->title) <= HEADING_MOST && passage->line > 0);
    for (size_t i = 0; i < passage->span_count; i++) {
        REQUIRE(passage->spans[i].start >= at && passage->spans[i].end >= passage->spans[i].start);
        at = passage->spans[i].end;
    }
    REQUIRE(at <= passage->length);
}

/* What was written is read again, and read again from damaged bytes without harm. */
static void check_record(struct arena *arena, const struct passage *passage, uint8_t damage)
{
    struct passage_record record = {.id = 7, .passage = *passage}, again;
    struct buf bytes;
    struct err err;
    buf_init(&bytes, 64 << 20);
    passage_encode(&record, &bytes);
    REQUIRE(passage_decode(bytes.data, bytes.length, arena, &again, &err) == 0);
    REQUIRE(strcmp(again.passage.text, passage->text) == 0);
    bytes.data[damage % bytes.length] ^= (char)(damage | 1);
    (void)!passage_decode(bytes.data, bytes.length, arena, &again, &err);
    REQUIRE(passage_decode(bytes.data, bytes.length - 1, arena, &again, &err) != 0);
    buf_free(&bytes);
}

static void read_postings(const struct buf *packed)
{
    struct postings postings;
    uint32_t ids[POSTINGS_BLOCK];
    const uint8_t *impacts;
    struct err err;
    if (postings_open(packed->data, packed->length, &postings, &err) == 0)
        for (uint32_t i = 0; i < postings.blocks && i < 64; i++)
            (void)postings_block(&postings, i, ids, &impacts);
}

static void check_words(const struct passage_list *list, uint8_t damage)
{
    struct words *words = words_new();
    struct index_builder *builder = builder_new(words);
    struct buf packed;
    size_t count;
    buf_init(&packed, 64 << 20);
    for (size_t i = 0; i < list->count; i++)
        builder_add(builder, (uint32_t)i, DOCUMENT_SOURCE, &list->items[i]);
    const struct term_postings *const *terms = builder_terms(builder, &count);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(terms[i]->length > 0 && terms[i]->length <= TERM_MAX && terms[i]->count > 0);
        REQUIRE(i == 0 || strcmp(terms[i - 1]->term, terms[i]->term) < 0);
        buf_reset(&packed);
        postings_encode(terms[i]->ids, terms[i]->impacts, terms[i]->count, &packed);
        read_postings(&packed);
        packed.data[damage % packed.length] ^= (char)(damage | 1);
        read_postings(&packed);
    }
    buf_free(&packed);
    builder_free(builder);
    words_free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 1 << 16)
        return 0;
    struct buf text;
    buf_init(&text, 1 << 20);
    read_clean((const char *)data + 1, size - 1, &text);
    struct passage_list list = {.arena = arena_new()};
    chunk_document((enum document_kind)(data[0] % DOCUMENT_KINDS), "a name", buf_text(&text),
                   text.length, &list);
    for (size_t i = 0; i < list.count; i++) {
        check_passage(&list.items[i]);
        check_record(list.arena, &list.items[i], data[1]);
    }
    check_words(&list, data[1]);
    arena_free(list.arena);
    passage_list_free(&list);
    buf_free(&text);
    return 0;
}
