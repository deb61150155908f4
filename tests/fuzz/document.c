#include "document.h"

#include "base/buf.h"
#include "base/json.h"

#include <string.h>

void require_document_message(const struct err *err)
{
    REQUIRE(err->code == ERR_USAGE);
    REQUIRE(strncmp(err->message, "doc:", 4) == 0);
    REQUIRE(strchr(err->message, '\n') == NULL);
}

static void write_tree(struct buf *out, const struct value *root)
{
    struct json json;
    json_init(&json, out);
    json_value(&json, root);
}

void require_json_round_trip(struct arena *arena, const struct value *root)
{
    struct buf first, second;
    struct value *again;
    struct err err;
    buf_init(&first, 1 << 24);
    buf_init(&second, 1 << 24);
    write_tree(&first, root);
    REQUIRE(first.dropped == 0);
    if (value_parse_json(arena, "doc", buf_text(&first), first.length, &again, &err) != 0) {
        fprintf(stderr, "%s\n%s\n", err.message, buf_text(&first));
        abort();
    }
    write_tree(&second, again);
    REQUIRE(strcmp(buf_text(&first), buf_text(&second)) == 0);
    buf_free(&first);
    buf_free(&second);
}

void require_whole(const struct value *value, bool lines, int depth)
{
    REQUIRE(value != NULL && depth <= 64);
    REQUIRE(lines ? value->line >= 1 : value->line == 0);
    REQUIRE(value->kind <= VALUE_MAP);
    if (value->kind == VALUE_TEXT)
        REQUIRE(strlen(value->text) == value->length);
    if (value->kind != VALUE_LIST && value->kind != VALUE_MAP)
        REQUIRE(value->count == 0);
    for (size_t i = 0; i < value->count; i++) {
        if (value->kind == VALUE_MAP) {
            REQUIRE(value_get(value, value->keys[i]) == value->items[i]);
            REQUIRE(!lines || value->key_lines[i] >= 1);
        }
        require_whole(value->items[i], lines, depth + 1);
    }
}
