#include "eval/cuda/probe/roofline_memory.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MOST = 1 << 14 };
static const char way[] = "1"; /* of measuring: another number for other loops */

/* mem_free() it; NULL where there is no place for it. */
static char *path_of(const struct value *device)
{
    static const char *const parts[] = {"gpu", "pci", "driver"};
    struct hash hash = hash_bytes(way, sizeof way);
    char key[33];
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *text = value_text(device, parts[i], "");
        hash = hash_combine(hash, hash_bytes(text, strlen(text)));
    }
    hash_format(hash, key);
    return file_cache_path("ceilings", key);
}

const struct value *roofline_recall(struct arena *arena, const struct value *device)
{
    struct value *root = NULL;
    MEM_LOCAL char *path = path_of(device);
    BUF_LOCAL(text, TEXT_MOST);
    if (path == NULL || file_read(path, &text, NULL) != 0 ||
        value_parse_json(arena, "ceilings", buf_text(&text), text.length, &root, NULL) != 0 ||
        !(value_real(root, "copy_bytes_per_s", 0.0) > 0.0))
        root = NULL;
    return root;
}

void roofline_remember(const struct value *device, const char *const *names)
{
    struct err ignored;
    char *path = path_of(device);
    if (path == NULL)
        return;
    BUF_LOCAL(text, TEXT_MOST);
    struct json json = {.out = &text};
    json_object(&json);
    json_put_text(&json, "gpu", value_text(device, "gpu", ""));
    json_put_text(&json, "driver", value_text(device, "driver", ""));
    for (size_t i = 0; names[i] != NULL; i++)
        json_put_real(&json, names[i], value_real(device, names[i], 0.0));
    json_object_end(&json);
    MEM_LOCAL char *folder = mem_strdup(path);
    *strrchr(folder, '/') = '\0';
    if (file_make_dirs(folder, &ignored) == 0)
        (void)(file_write(path, buf_text(&text), text.length, &ignored) == 0);
    mem_free(path);
}
