#include "eval/cuda/run/variants.h"

#include "base/file.h"

#include <string.h>

enum { LOG_MOST = 1 << 20 };

unsigned known_of(int64_t number)
{
    unsigned known = number < INT32_MIN || number > INT32_MAX ? KNOWN_WIDE : 0;
    if (number == 1)
        return KNOWN_ONE;
    return number % 16 == 0 ? known | KNOWN_16 : known;
}

/* [swizzle, box...] each; a kernel without has none. */
static bool read_maps(const struct value *list, struct kernel *kernel)
{
    if (list == NULL)
        return true;
    if (list->kind != VALUE_LIST || list->count > TENSOR_MAPS_MAX)
        return false;
    for (size_t i = 0; i < list->count; i++) {
        const struct value *item = list->items[i];
        struct kernel_map *map = &kernel->maps[kernel->map_count++];
        if (item->kind != VALUE_LIST || item->count < 2 || item->count > 1 + TENSOR_MAP_RANK)
            return false;
        map->swizzle = (uint32_t)item->items[0]->integer;
        while (map->rank < item->count - 1) {
            map->box[map->rank] = (uint32_t)item->items[1 + map->rank]->integer;
            map->rank++;
        }
    }
    return true;
}

static bool read_kernel(const struct value *item, struct kernel *kernel)
{
    const struct value *known = value_get(item, "known");
    int64_t offset = value_int(item, "offset", -1), bytes = value_int(item, "bytes", -1);
    if (known == NULL || known->kind != VALUE_LIST || known->count > KERNEL_ARGS_MAX ||
        offset < 0 || bytes <= 0)
        return false;
    for (size_t i = 0; i < known->count; i++)
        kernel->known[i] = (unsigned)known->items[i]->integer;
    kernel->offset = (size_t)offset;
    kernel->bytes = (size_t)bytes;
    kernel->threads = (uint32_t)value_int(item, "threads", 0);
    kernel->shared_bytes = (uint32_t)value_int(item, "shared_bytes", 0);
    kernel->cluster = (uint32_t)value_int(item, "cluster", 1);
    kernel->scratch_bytes = (uint32_t)value_int(item, "scratch_bytes", 0);
    kernel->scratch_align = (uint32_t)value_int(item, "scratch_align", 1);
    return read_maps(value_get(item, "maps"), kernel);
}

int variants_read(struct arena *arena, const char *log, struct variants **variants, struct err *err)
{
    struct value *root = NULL;
    BUF_LOCAL(text, LOG_MOST);
    *variants = NULL;
    if (file_read(log, &text, err) != 0 ||
        value_parse_json(arena, "kernel.json", buf_text(&text), text.length, &root, err) != 0)
        return -1;
    const struct value *launches = value_get(root, "launches");
    if (launches == NULL)
        return 0;
    struct variants *read = ARENA_NEW(arena, struct variants);
    bool fine = launches->kind == VALUE_LIST && launches->count <= LAUNCHES_MAX;
    for (size_t i = 0; fine && i < launches->count; i++) {
        const struct value *list = launches->items[i];
        fine = list->kind == VALUE_LIST && list->count <= VARIANTS_MAX;
        for (size_t k = 0; fine && k < list->count; k++)
            fine =
                read_kernel(list->items[k], &read->launches[i].variants[read->launches[i].count++]);
        read->launch_count++;
    }
    if (!fine)
        return err_set(err, ERR_PARSE, "kernel.json: its launches cannot be read");
    *variants = read;
    return 0;
}

int variants_beside(struct arena *arena, const struct candidate *candidate, const char *artifact,
                    struct variants **variants, struct err *err)
{
    const char *slash = strrchr(artifact, '/');
    int folder = slash != NULL ? (int)(slash - artifact) + 1 : 0;
    *variants = NULL;
    if (candidate == NULL || !candidate->language->fixes_block)
        return 0;
    if (variants_read(arena, arena_printf(arena, "%.*skernel.json", folder, artifact), variants,
                      err) != 0)
        return -1;
    return *variants != NULL
               ? 0
               : err_set(err, ERR_PARSE, "%s: nothing is said of its launches", artifact);
}

static bool holds(unsigned assumed, unsigned actual)
{
    return (actual & KNOWN_WIDE) <= (assumed & KNOWN_WIDE) &&
           (assumed & (KNOWN_ONE | KNOWN_16) & ~actual) == 0;
}

const struct kernel *variants_find(const struct variants *variants, size_t launch,
                                   const unsigned *actual, size_t count)
{
    const struct kernel *best = NULL;
    int most = -1;
    for (size_t i = 0; launch < variants->launch_count && i < variants->launches[launch].count;
         i++) {
        const struct kernel *kernel = &variants->launches[launch].variants[i];
        int knows = 0;
        bool fits = true;
        for (size_t k = 0; k < count; k++) {
            fits = fits && holds(kernel->known[k], actual[k]);
            knows += (kernel->known[k] & (KNOWN_ONE | KNOWN_16)) != 0;
        }
        if (fits && knows > most) {
            most = knows;
            best = kernel;
        }
    }
    return best;
}
