/* Any bytes are a document or a message; a document goes through JSON unchanged. */
#include "document.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct value *root = NULL;
    struct err err = {0};
    if (value_parse_yaml(arena, "doc", (const char *)data, size, &root, &err) == 0) {
        require_whole(root, true, 1);
        require_json_round_trip(arena, root);
    } else {
        require_document_message(&err);
    }
    arena_free(arena);
    return 0;
}
