#include "agents/retrieve/rag/records.h"

#include <string.h>

struct reader {
    const unsigned char *at, *end;
    struct arena *arena;
    bool damaged;
};

static void put_number(struct buf *out, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        buf_add_char(out, (char)(unsigned char)(number >> (8 * i)));
}

static void put_text(struct buf *out, const char *text, size_t length)
{
    put_number(out, length, 4);
    buf_add(out, text, length);
}

static void put_hash(struct buf *out, struct hash hash)
{
    put_number(out, hash.high, 8);
    put_number(out, hash.low, 8);
}

static uint64_t get_number(struct reader *reader, int bytes)
{
    uint64_t number = 0;
    if (reader->end - reader->at < bytes) {
        reader->damaged = true;
        return 0;
    }
    for (int i = 0; i < bytes; i++)
        number |= (uint64_t)reader->at[i] << (8 * i);
    reader->at += bytes;
    return number;
}

static const char *get_text(struct reader *reader, size_t *length)
{
    *length = (size_t)get_number(reader, 4);
    if ((size_t)(reader->end - reader->at) < *length) {
        reader->damaged = true;
        *length = 0;
        return "";
    }
    const char *text = arena_strndup(reader->arena, (const char *)reader->at, *length);
    reader->at += *length;
    return text;
}

static struct hash get_hash(struct reader *reader)
{
    struct hash hash = {.high = get_number(reader, 8)};
    hash.low = get_number(reader, 8);
    return hash;
}

static int finish(const struct reader *reader, const char *what, struct err *err)
{
    if (reader->damaged || reader->at != reader->end)
        return err_set(err, ERR_CORRUPT, "a damaged %s in the index of documents", what);
    return 0;
}

struct hash record_key(const char *path)
{
    return hash_bytes(path, strlen(path));
}

void root_encode(const struct root_record *root, struct buf *out)
{
    put_text(out, root->path, strlen(root->path));
    put_text(out, root->tags, strlen(root->tags));
    put_text(out, root->excludes, strlen(root->excludes));
}

int root_decode(const void *bytes, size_t length, struct arena *arena, struct root_record *root,
                struct err *err)
{
    struct reader reader = {bytes, (const unsigned char *)bytes + length, arena, false};
    size_t ignored;
    root->path = get_text(&reader, &ignored);
    root->tags = get_text(&reader, &ignored);
    root->excludes = get_text(&reader, &ignored);
    return finish(&reader, "path", err);
}

void document_encode(const struct document_record *document, struct buf *out)
{
    put_text(out, document->path, strlen(document->path));
    put_text(out, document->root, strlen(document->root));
    put_text(out, document->tags, strlen(document->tags));
    put_hash(out, document->content);
    put_number(out, document->bytes, 8);
    put_number(out, document->kind, 4);
    put_number(out, document->first, 4);
    put_number(out, document->count, 4);
}

int document_decode(const void *bytes, size_t length, struct arena *arena,
                    struct document_record *document, struct err *err)
{
    struct reader reader = {bytes, (const unsigned char *)bytes + length, arena, false};
    size_t ignored;
    document->path = get_text(&reader, &ignored);
    document->root = get_text(&reader, &ignored);
    document->tags = get_text(&reader, &ignored);
    document->content = get_hash(&reader);
    document->bytes = get_number(&reader, 8);
    document->kind = (uint32_t)get_number(&reader, 4);
    document->first = (uint32_t)get_number(&reader, 4);
    document->count = (uint32_t)get_number(&reader, 4);
    return finish(&reader, "document", err);
}

void passage_encode(const struct passage_record *record, struct buf *out)
{
    const struct passage *passage = &record->passage;
    put_number(out, record->id, 8);
    put_hash(out, record->document);
    put_text(out, passage->title, strlen(passage->title));
    put_text(out, passage->path, strlen(passage->path));
    put_text(out, passage->text, passage->length);
    put_number(out, passage->line, 4);
    put_number(out, passage->span_count, 4);
    for (size_t i = 0; i < passage->span_count; i++) {
        put_number(out, passage->spans[i].start, 4);
        put_number(out, passage->spans[i].end, 4);
    }
}

int passage_decode(const void *bytes, size_t length, struct arena *arena,
                   struct passage_record *record, struct err *err)
{
    struct reader reader = {bytes, (const unsigned char *)bytes + length, arena, false};
    struct passage *passage = &record->passage;
    size_t ignored;
    record->id = get_number(&reader, 8);
    record->document = get_hash(&reader);
    passage->title = get_text(&reader, &ignored);
    passage->path = get_text(&reader, &ignored);
    passage->text = get_text(&reader, &passage->length);
    passage->line = (uint32_t)get_number(&reader, 4);
    size_t spans = (size_t)get_number(&reader, 4);
    if (spans > (size_t)(reader.end - reader.at) / 8) {
        reader.damaged = true;
        spans = 0;
    }
    struct code_span *items = arena_array(arena, spans + 1, sizeof *items);
    for (size_t i = 0; i < spans; i++) {
        items[i].start = (uint32_t)get_number(&reader, 4);
        items[i].end = (uint32_t)get_number(&reader, 4);
    }
    passage->spans = items;
    passage->span_count = spans;
    return finish(&reader, "passage", err);
}

uint64_t passage_identity(const char *source, const struct passage *passage)
{
    struct hash hash = hash_bytes(source, strlen(source));
    hash = hash_combine(hash, hash_bytes(passage->path, strlen(passage->path)));
    hash = hash_combine(hash, hash_bytes(passage->title, strlen(passage->title)));
    hash = hash_combine(hash, hash_bytes(passage->text, passage->length));
    return hash.low;
}

int passage_verify(const struct passage_record *record, const char *source, struct err *err)
{
    enum { TWINS_MOST = 1 << 20 };
    if (record->id - passage_identity(source, &record->passage) > TWINS_MOST)
        return err_set(err, ERR_CORRUPT, "a damaged passage in the index of documents");
    return 0;
}

struct rag_passage passage_shown(const struct passage_record *record,
                                 const struct document_record *document)
{
    return (struct rag_passage){.id = record->id,
                                .source = document->path,
                                .tags = document->tags,
                                .path = record->passage.path,
                                .title = record->passage.title,
                                .text = record->passage.text,
                                .line = record->passage.line,
                                .tokens = (record->passage.length + 3) / 4};
}

const char *tags_normal(struct arena *arena, const char *tags)
{
    BUF_LOCAL(out, 4096);
    for (const char *at = tags ? tags : ""; *at != '\0';) {
        at += strspn(at, ", \t");
        size_t length = strcspn(at, ", \t");
        if (length > 0) {
            if (out.length == 0)
                buf_add_char(&out, ',');
            buf_add(&out, at, length);
            buf_add_char(&out, ',');
        }
        at += length;
    }
    return arena_strndup(arena, buf_text(&out), out.length);
}

bool tags_meet(const char *tags, const char *others)
{
    if (tags[0] == '\0' || others[0] == '\0')
        return false;
    for (const char *at = tags; at[1] != '\0';) { /* at a comma */
        size_t length = strcspn(at + 1, ",") + 2;
        for (const char *other = others; other != NULL && other[1] != '\0';
             other = strchr(other + 1, ','))
            if (strncmp(other, at, length) == 0)
                return true;
        at += length - 1;
    }
    return false;
}
