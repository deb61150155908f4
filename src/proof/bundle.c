#include "proof/bundle.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char format[] = "twagent bundle";
enum { VERSION = 1, PARTS_MOST = 3, SIZE_MOST = 1000 };
static const char *const parts[] = {"kernel", "problem", "evidence"};
static const int64_t written_most = INT64_C(1) << 48; /* a date that people have */
enum { PARTS = sizeof parts / sizeof parts[0] };

/* ---- out ---- */

bool bundle_name_fits(const char *name)
{
    size_t count = 1, at = 0, length = strlen(name);
    for (size_t i = 0; i < length; i++, at++) {
        unsigned char c = (unsigned char)name[i];
        if (c == '/' && at > 0) {
            count++;
            at = (size_t)-1;
        } else if (!isalnum(c) && c != '_' && (at == 0 || (c != '-' && c != '.'))) {
            return false;
        }
    }
    return at > 0 && count <= PARTS_MOST && length <= BUNDLE_NAME_MOST;
}

static void put_kernel(const struct bundle *bundle, struct json *json)
{
    json_object(json);
    json_put_text(json, "id", bundle->id);
    json_put_text(json, "name", bundle->name);
    json_put_text(json, "source", bundle->source);
    json_put_value(json, "tune", bundle->tune);
    json_object_end(json);
}

static void put_problem(const struct bundle *bundle, struct json *json)
{
    json_object(json);
    json_put_text(json, "name", bundle->problem);
    json_put_text(json, "entry", bundle->entry);
    json_put_text(json, "size", bundle->size);
    json_put_object(json, "files");
    for (size_t i = 0; i < bundle->file_count; i++)
        json_put_text(json, bundle->files[i].name, bundle->files[i].text);
    json_object_end(json);
    json_object_end(json);
}

static void put_evidence(const struct bundle *bundle, struct json *json)
{
    json_object(json);
    json_put_bool(json, "final", bundle->final);
    json_put_text(json, "twagent", bundle->twagent);
    json_put_int(json, "written_ms", (int64_t)bundle->written_ms);
    json_put_value(json, "record", bundle->evidence);
    json_object_end(json);
}

int bundle_encode(const struct bundle *bundle, struct buf *out, struct err *err)
{
    static void (*const put[PARTS])(const struct bundle *,
                                    struct json *) = {put_kernel, put_problem, put_evidence};
    char hashes[PARTS][33];
    struct json json = {.out = out};
    json_object(&json);
    json_put_text(&json, "format", format);
    json_put_int(&json, "version", VERSION);
    for (size_t i = 0; i < PARTS; i++) {
        json_key(&json, parts[i]);
        size_t begin = out->length;
        put[i](bundle, &json);
        begin += buf_text(out)[begin] == ':';
        hash_format(hash_bytes(buf_text(out) + begin, out->length - begin), hashes[i]);
    }
    json_put_object(&json, "hashes");
    for (size_t i = 0; i < PARTS; i++)
        json_put_text(&json, parts[i], hashes[i]);
    json_object_end(&json);
    json_object_end(&json);
    buf_add_char(out, '\n');
    if (out->dropped > 0)
        return err_set(err, ERR_LIMIT, "a bundle holds at most %d MiB", BUNDLE_MOST >> 20);
    return 0;
}

/* ---- in ---- */

static int take_text(const struct value *map, const char *part, const char *key, const char **text,
                     struct err *err)
{
    const struct value *value = value_get(map, key);
    if (value == NULL || value->kind != VALUE_TEXT)
        return err_set(err, ERR_USAGE, "expected a text for %s.%s", part, key);
    *text = value->text;
    return 0;
}

static int check_hashes(const struct value *root, struct err *err)
{
    const struct value *hashes = value_get(root, "hashes");
    for (size_t i = 0; i < PARTS; i++) {
        char found[33];
        JSON_LOCAL(json, text, 2 * BUNDLE_MOST);
        json_value(&json, value_get(root, parts[i]));
        hash_format(hash_bytes(buf_text(&text), text.length), found);
        if (strcmp(value_text(hashes, parts[i], ""), found) != 0)
            return err_set(err, ERR_USAGE,
                           "its %s is not what was written: its hash is %s, not %.32s", parts[i],
                           found, value_text(hashes, parts[i], "given"));
    }
    return 0;
}

static int take_kernel(const struct value *part, struct bundle *bundle, struct err *err)
{
    bundle->tune = value_get(part, "tune");
    if (take_text(part, "kernel", "id", &bundle->id, err) != 0 ||
        take_text(part, "kernel", "name", &bundle->name, err) != 0 ||
        take_text(part, "kernel", "source", &bundle->source, err) != 0)
        return -1;
    if (!bundle_name_fits(bundle->name) || strchr(bundle->name, '/') != NULL)
        return err_set(err, ERR_USAGE, "expected a file name for kernel.name");
    if (!bundle_name_fits(bundle->id))
        return err_set(err, ERR_USAGE, "expected a candidate's id for kernel.id");
    if (bundle->tune == NULL || bundle->tune->kind != VALUE_MAP)
        return err_set(err, ERR_USAGE, "expected a map of numbers for kernel.tune");
    for (size_t i = 0; i < bundle->tune->count; i++)
        if (bundle->tune->items[i]->kind != VALUE_INT)
            return err_set(err, ERR_USAGE, "expected a map of numbers for kernel.tune");
    return 0;
}

static bool size_fits(const char *size)
{
    size_t length = strlen(size);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)size[i]) && strchr("_-.=,", size[i]) == NULL)
            return false;
    return length <= SIZE_MOST;
}

static int take_problem(const struct value *part, struct bundle *bundle, struct err *err)
{
    const struct value *files = value_get(part, "files");
    bool has_entry = false;
    if (take_text(part, "problem", "name", &bundle->problem, err) != 0 ||
        take_text(part, "problem", "entry", &bundle->entry, err) != 0 ||
        take_text(part, "problem", "size", &bundle->size, err) != 0)
        return -1;
    if (!bundle_name_fits(bundle->problem) || !size_fits(bundle->size))
        return err_set(err, ERR_USAGE, "expected a problem's name and size");
    if (files == NULL || files->kind != VALUE_MAP || files->count > BUNDLE_FILES_MOST)
        return err_set(err, ERR_USAGE, "expected problem.files: {NAME: TEXT}, at most %d",
                       BUNDLE_FILES_MOST);
    for (size_t i = 0; i < files->count; i++) {
        if (!bundle_name_fits(files->keys[i]) || files->items[i]->kind != VALUE_TEXT)
            return err_set(err, ERR_USAGE,
                           "expected names of files below the problem's folder in problem.files, "
                           "not \"%.80s\"",
                           files->keys[i]);
        has_entry = has_entry || strcmp(files->keys[i], bundle->entry) == 0;
        bundle->files[bundle->file_count++] =
            (struct bundle_file){.name = files->keys[i], .text = files->items[i]->text};
    }
    if (!has_entry)
        return err_set(err, ERR_USAGE, "expected problem.entry to be one of problem.files");
    return 0;
}

static bool is_possible(const struct interval *interval)
{
    return interval->samples > 0 && isfinite(interval->high) && interval->low > 0 &&
           interval->low <= interval->median && interval->median <= interval->high;
}

/* Figures that no measurement gives: told before anything is run. */
static int check_claim(const struct evaluation *claim, struct err *err)
{
    const char *why = NULL;
    struct comparison comparison = {.speedup = claim->speedup,
                                    .spread = claim->spread,
                                    .baseline_spread = claim->spread,
                                    .baseline_samples = claim->baseline_ns.samples};
    if (claim->verdict != VERDICT_KERNEL)
        why = "it is no kernel's";
    else if (claim->checks_total < 1 || claim->checks_passed != claim->checks_total)
        why = "not every check has passed";
    else if (!is_possible(&claim->time_ns))
        why = "its time is no interval";
    else if (claim->speedup.samples > 0 && (!is_possible(&claim->speedup) || claim->spread < 0 ||
                                            !is_possible(&claim->baseline_ns)))
        why = "its speed-up is no interval";
    else if (claim->finding == FINDING_FASTER && stats_finding(&comparison) != FINDING_FASTER)
        why = "it says \"faster\", which its own interval and spread do not show";
    else if (!bundle_name_fits(*claim->baseline ? claim->baseline : "none"))
        why = "its baseline has no name";
    return why != NULL ? err_set(err, ERR_USAGE, "its evidence cannot be: %s", why) : 0;
}

static int take_evidence(struct arena *arena, const struct value *part, struct bundle *bundle,
                         struct err *err)
{
    bundle->evidence = value_get(part, "record");
    bundle->final = value_bool(part, "final", false);
    int64_t written_ms = value_int(part, "written_ms", 0);
    bundle->written_ms = (uint64_t)written_ms;
    if (take_text(part, "evidence", "twagent", &bundle->twagent, err) != 0)
        return -1;
    if (!bundle_name_fits(bundle->twagent) || written_ms < 0 || written_ms > written_most)
        return err_set(err, ERR_USAGE, "expected a version and a time in evidence");
    if (evaluation_from_value(arena, bundle->evidence, &bundle->claim, err) != 0) {
        if (err != NULL)
            err->code = ERR_USAGE;
        return -1;
    }
    return check_claim(&bundle->claim, err);
}

int bundle_decode(struct arena *arena, const char *text, size_t length, struct bundle *bundle,
                  struct err *err)
{
    struct value *root;
    *bundle = (struct bundle){.id = ""};
    if (length > BUNDLE_MOST)
        return err_set(err, ERR_USAGE, "more than %d MiB", BUNDLE_MOST >> 20);
    if (value_parse_json(arena, "not a whole bundle", text, length, &root, err) != 0)
        return -1;
    if (strcmp(value_text(root, "format", ""), format) != 0)
        return err_set(err, ERR_USAGE, "no bundle: twagent best PROBLEM --bundle FILE writes one");
    if (value_int(root, "version", 0) != VERSION)
        return err_set(err, ERR_UNSUPPORTED,
                       "a bundle of version %lld: this twagent reads version %d",
                       (long long)value_int(root, "version", 0), VERSION);
    if (check_hashes(root, err) != 0 || take_kernel(value_get(root, "kernel"), bundle, err) != 0 ||
        take_problem(value_get(root, "problem"), bundle, err) != 0)
        return -1;
    return take_evidence(arena, value_get(root, "evidence"), bundle, err);
}

int bundle_unpack(const struct bundle *bundle, const char *folder, struct err *err)
{
    for (size_t i = 0; i < bundle->file_count; i++) {
        const struct bundle_file *file = &bundle->files[i];
        MEM_LOCAL char *path = file_join(folder, file->name);
        MEM_LOCAL char *parent = mem_strdup(path);
        *strrchr(parent, '/') = '\0';
        if (file_make_dirs(parent, err) != 0 ||
            file_write(path, file->text, strlen(file->text), err) != 0)
            return -1;
    }
    return 0;
}
