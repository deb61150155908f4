#include "agents/prompt/private.h"

#include "base/value.h"

#include <string.h>

/* ---- the machine, as lines of "key: value" ---- */

static void put_value(const struct value *value, int depth, struct buf *out)
{
    switch (value->kind) {
    case VALUE_TEXT:
        buf_addf(out, "%.800s", value->text);
        break;
    case VALUE_BOOL:
        buf_add_text(out, value->boolean ? "yes" : "no");
        break;
    case VALUE_INT:
        buf_addf(out, "%lld", (long long)value->integer);
        break;
    case VALUE_REAL:
        buf_addf(out, "%.4g", value->real);
        break;
    case VALUE_NULL:
        buf_add_text(out, "not known");
        break;
    default: /* a list or map inside: one line, as deep as it goes */
        for (size_t i = 0; i < value->count && depth < 4; i++) {
            if (i > 0)
                buf_add_text(out, ", ");
            if (value->kind == VALUE_MAP)
                buf_addf(out, "%s ", value->keys[i]);
            put_value(value->items[i], depth + 1, out);
        }
    }
}

static bool ends(const char *text, const char *tail)
{
    size_t length = strlen(text), more = strlen(tail);
    return length >= more && strcmp(text + length - more, tail) == 0;
}

static bool among(const char *key, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strcmp(key, *list) == 0)
            return true;
    return false;
}

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* What -march=native stands for, as far as who computes asks for it: vectors and bit counts. Units
 * for 16-bit numbers are of use to whose problem has some. */
static void put_march(const char *flags, bool narrow, struct buf *out)
{
    static const char *const kept[] = {"-march=", "-mtune=", "-mavx",  "-msse4", "-mfma",
                                       "-mf16c",  "-mbmi",   "-mgfni", "-mamx",  "-mpopcnt"};
    buf_add_text(out, "- march:");
    for (const char *at = flags; *(at += strspn(at, " ")) != '\0'; at += strcspn(at, " ")) {
        size_t length = strcspn(at, " ");
        bool short_numbers =
            memmem(at, length, "bf16", 4) || memmem(at, length, "fp16", 4) || begins(at, "-mamx");
        bool shown = narrow || !short_numbers;
        size_t i = 0;
        while (i < sizeof kept / sizeof kept[0] && !begins(at, kept[i]))
            i++;
        if (shown && (i < sizeof kept / sizeof kept[0] || at[0] != '-'))
            buf_addf(out, " %.*s", (int)length, at);
    }
    buf_add_char(out, '\n');
}

static bool has_narrow(const struct problem *problem)
{
    bool narrow = false;
    for (size_t i = 0; i < problem->input_count; i++)
        narrow = narrow || dtype_bytes(problem->inputs[i].dtype) <= 2;
    for (size_t i = 0; i < problem->output_count; i++)
        narrow = narrow || dtype_bytes(problem->outputs[i].dtype) <= 2;
    return narrow;
}

static void put_fact(const char *key, const struct value *value, struct buf *out)
{
    /* What only says how it is measured here is of no use to who writes a kernel. */
    static const char *const ours[] = {"backend", "perf_counters", "perf_samples",
                                       "ptrace",  "sandbox",       NULL};
    const char *missing = value_text(value, "missing", NULL);
    if (strcmp(key, "sandbox") == 0 && missing != NULL) /* so was all that is quoted below */
        buf_addf(out, "- measured without a whole sandbox: %s\n", missing);
    if (among(key, ours))
        return;
    bool rate = value->kind == VALUE_REAL || value->kind == VALUE_INT;
    buf_addf(out, "- %s: ", key);
    if (rate && ends(key, "bytes_per_s"))
        buf_addf(out, "%.3g GB/s", value->real / 1e9);
    else if (rate && ends(key, "flops_per_s"))
        buf_addf(out, "%.4g Gflop/s", value->real / 1e9);
    else
        put_value(value, 0, out);
    buf_add_char(out, '\n');
}

static const struct value *object(struct arena *arena, const char *json)
{
    struct value *root;
    struct err ignored;
    if (json == NULL || value_parse_json(arena, "object", json, strlen(json), &root, &ignored) != 0)
        return NULL;
    return root->kind == VALUE_MAP ? root : NULL;
}

/* ---- a GPU: what it is, what it measured at, what its instructions are ---- */

/* Only what is known. */
static void put_ceilings(const struct value *device, struct buf *out)
{
    static const struct {
        const char *key, *words, *unit;
    } ceilings[] = {{"copy_bytes_per_s", "copy (bytes read + written)", "TB/s"},
                    {"read_bytes_per_s", "read", "TB/s"},
                    {"flops_per_s", "fp32 FMA", "Tflop/s"},
                    {"tf32_flops_per_s", "tf32 on the matrix units", "Tflop/s"},
                    {"bf16_flops_per_s", "bf16", "Tflop/s"},
                    {"fp16_flops_per_s", "fp16", "Tflop/s"}};
    const char *before = "- measured ceilings: ";
    for (size_t i = 0; i < sizeof ceilings / sizeof ceilings[0]; i++) {
        double rate = value_real(device, ceilings[i].key, 0.0) / 1e12;
        if (!(rate > 0.0))
            continue;
        buf_addf(out, "%s%s %.3g %s", before, ceilings[i].words, rate, ceilings[i].unit);
        before = ", ";
    }
    if (*before == ',')
        buf_add_char(out, '\n');
}

static void put_architecture(int64_t capability, struct buf *out)
{
    static const struct {
        int64_t least;
        const char *words;
    } generations[] = {
        {100,
         "TMA (cp.async.bulk and cp.async.bulk.tensor on mbarriers), clusters with distributed "
         "shared memory, tcgen05 matrix instructions on tensor memory"},
        {90, "TMA (cp.async.bulk and cp.async.bulk.tensor on mbarriers), wgmma (a warpgroup of 4 "
             "warps multiplies tiles from shared memory), setmaxnreg, clusters with distributed "
             "shared memory"},
        {80, "cp.async into shared memory, mma.sync on tf32, bf16 and fp16"},
        {70, "mma.sync and wmma on fp16"}};
    if (capability > 0)
        buf_addf(out, "- compute capability %d.%d, compiled for sm_%d%s", (int)(capability / 10),
                 (int)(capability % 10), (int)capability, capability >= 90 ? "a" : "");
    for (size_t i = 0; i < sizeof generations / sizeof generations[0]; i++)
        if (capability >= generations[i].least) {
            buf_addf(out, ": %s", generations[i].words);
            break;
        }
    if (capability > 0)
        buf_add_char(out, '\n');
}

static void put_gpu(const struct value *device, const struct value *facts, struct buf *out)
{
    double memory = value_real(device, "memory_bytes", 0.0);
    buf_addf(out, "- %s", value_text(device, "gpu", "a GPU"));
    if (memory > 0.0)
        buf_addf(out, ", %.0f GiB", memory / 0x1p30);
    buf_add_char(out, '\n');
    put_architecture(value_int(facts, "compute_capability", 0), out);
    put_ceilings(device, out);
    if (facts != NULL && facts->count > 0)
        buf_add_text(out, "- facts, by the names that launch expressions may use:");
    for (size_t i = 0; facts != NULL && i < facts->count; i++) {
        buf_addf(out, "%s %s ", i > 0 ? "," : "", facts->keys[i]);
        put_value(facts->items[i], 0, out);
    }
    if (facts != NULL && facts->count > 0)
        buf_add_char(out, '\n');
}

void put_device(const struct material *material, size_t most, struct buf *out)
{
    (void)most; /* short, and every line of it counts */
    ARENA_LOCAL(arena);
    const struct value *device = object(arena, material->context->device);
    const struct value *facts = object(arena, material->context->facts);
    bool gpu = value_text(device, "gpu", NULL) != NULL;
    if (gpu)
        put_gpu(device, facts, out);
    if (material->context->language != NULL)
        buf_addf(out, "- kernels are written in: %s\n", material->context->language->name);
    for (size_t i = 0; device != NULL && !gpu && i < device->count; i++)
        if (strcmp(device->keys[i], "march") == 0 && device->items[i]->kind == VALUE_TEXT)
            put_march(device->items[i]->text, has_narrow(material->context->problem), out);
        else
            put_fact(device->keys[i], device->items[i], out);
    for (size_t i = 0; facts != NULL && !gpu && i < facts->count; i++)
        if (value_get(device, facts->keys[i]) == NULL)
            put_fact(facts->keys[i], facts->items[i], out);
}
