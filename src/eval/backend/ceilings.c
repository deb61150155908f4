#include "eval/backend/ceilings.h"

#include "base/expr.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/value.h"

#include <string.h>

enum { TEXT_MOST = 1 << 12 };
static const char way[] = "2"; /* of measuring: another number for other loops */

const char *const ceiling_names[CEILINGS] = {"copy_bytes_per_s", "read_bytes_per_s",
                                             "flops_per_s",      "tf32_flops_per_s",
                                             "bf16_flops_per_s", "fp16_flops_per_s"};

double *ceiling_of(struct lane_facts *lane, size_t which)
{
    double *const rates[CEILINGS] = {&lane->copy_bytes_per_s, &lane->read_bytes_per_s,
                                     &lane->flops_per_s,      &lane->tf32_flops_per_s,
                                     &lane->bf16_flops_per_s, &lane->fp16_flops_per_s};
    return rates[which];
}

void ceilings_put(struct lane_facts *lane, struct json *json)
{
    for (size_t i = 0; i < CEILINGS; i++)
        if (*ceiling_of(lane, i) > 0.0)
            json_put_real(json, ceiling_names[i], *ceiling_of(lane, i));
    if (lane->under_load)
        json_put_bool(json, "under_load", true);
}

/* mem_free() it; NULL where there is no place for it. */
static char *path_of(const struct lane_facts *lane)
{
    char key[33];
    if (lane->identity == NULL)
        return NULL;
    hash_format(hash_combine(hash_bytes(way, sizeof way),
                             hash_bytes(lane->identity, strlen(lane->identity))),
                key);
    return file_cache_path("ceilings", key);
}

void ceilings_recall(struct lane_facts *lane)
{
    struct value *root;
    ARENA_LOCAL(arena);
    BUF_LOCAL(text, TEXT_MOST);
    MEM_LOCAL char *path = path_of(lane);
    if (path == NULL || file_read(path, &text, NULL) != 0 ||
        value_parse_json(arena, "ceilings", buf_text(&text), text.length, &root, NULL) != 0 ||
        !(value_real(root, ceiling_names[0], 0.0) > 0.0))
        return;
    for (size_t i = 0; i < CEILINGS; i++)
        *ceiling_of(lane, i) = value_real(root, ceiling_names[i], 0.0);
    lane->under_load = value_bool(root, "under_load", false);
}

static void keep(struct lane_facts *lane)
{
    struct err ignored;
    MEM_LOCAL char *path = path_of(lane);
    MEM_LOCAL char *folder = file_cache_path("ceilings", NULL);
    JSON_LOCAL(json, text, TEXT_MOST);
    json_object(&json);
    json_put_text(&json, "of", lane->identity);
    ceilings_put(lane, &json);
    json_object_end(&json);
    if (path != NULL && file_make_dirs(folder, &ignored) == 0)
        (void)(file_write(path, buf_text(&text), text.length, &ignored) == 0);
}

void ceilings_remember(struct lane_facts *lane)
{
    struct lane_facts best = {.identity = lane->identity, .under_load = true};
    ceilings_recall(&best);
    for (size_t i = 0; i < CEILINGS; i++)
        if (*ceiling_of(lane, i) > *ceiling_of(&best, i))
            *ceiling_of(&best, i) = *ceiling_of(lane, i);
    best.under_load = best.under_load && lane->under_load;
    keep(&best);
}

void ceilings_doubt(struct lane_facts *lane)
{
    struct lane_facts best = {.identity = lane->identity};
    ceilings_recall(&best);
    if (!(best.copy_bytes_per_s > 0.0) || best.under_load)
        return;
    best.under_load = true;
    keep(&best);
}
