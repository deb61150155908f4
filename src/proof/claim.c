#include "proof/claim.h"

#include "base/buf.h"

#include <string.h>

static const char *const answers[] = {[CLAIM_HOLDS] = "holds",
                                      [CLAIM_DIFFERS] = "differs",
                                      [CLAIM_UNKNOWN] = "cannot say",
                                      [CLAIM_NOT_RIGHT] = "not right"};

/* Wider intervals than this, to either side of the median, overlap with nearly anything. */
static const double half_width_most = 0.25;
enum { DIFFERS_MOST = 1000, SHOWN_MOST = 60 };

const char *claim_answer_name(enum claim_answer answer)
{
    return answers[answer];
}

/* ---- what is another one ---- */

static const struct value *parsed(struct arena *arena, const char *text)
{
    struct value *root = NULL;
    struct err ignored;
    return value_parse_json(arena, "record", text, strlen(text), &root, &ignored) == 0 ? root
                                                                                       : NULL;
}

/* A record's words go to a terminal. */
static const char *printable(char *text)
{
    err_one_line(text);
    return text;
}

static const char *shown(struct arena *arena, const struct value *value)
{
    if (value == NULL || value->kind == VALUE_NULL)
        return "none";
    if (value->kind == VALUE_INT)
        return arena_printf(arena, "%lld", (long long)value->integer);
    if (value->kind != VALUE_TEXT)
        return "?";
    return printable(arena_strndup(arena, value->text, strnlen(value->text, SHOWN_MOST)));
}

static bool compare_key(struct arena *arena, const struct value *then, const struct value *now,
                        const char *key, struct buf *out)
{
    const char *old = shown(arena, value_get(then, key)), *new = shown(arena, value_get(now, key));
    if (strcmp(old, new) == 0)
        return false;
    buf_addf(out, "%s%s %s, here %s", out->length > 0 ? "; " : "", key, old, new);
    return true;
}

const char *claim_machine(struct arena *arena, const struct evaluation *evaluation)
{
    const struct value *device = parsed(arena, evaluation->device);
    const struct value *gpu = value_get(device, "gpu");
    const char *name = shown(arena, gpu != NULL ? gpu : value_get(device, "cpu"));
    return gpu != NULL ? name
                       : arena_printf(arena, "%s, %lld cores", name,
                                      (long long)value_int(device, "cores", 0));
}

/* Of the versions only keys that this machine's record has are looked at: those are ours. */
static bool compare_machines(struct arena *arena, const struct evaluation *then,
                             const struct evaluation *now, struct buf *out)
{
    static const char *const device_keys[] = {"cpu", "gpu", "cores"};
    const struct value *old = parsed(arena, then->device), *new = parsed(arena, now->device);
    bool elsewhere = false;
    for (size_t i = 0; i < sizeof device_keys / sizeof device_keys[0]; i++)
        elsewhere = compare_key(arena, old, new, device_keys[i], out) || elsewhere;
    old = parsed(arena, then->versions);
    new = parsed(arena, now->versions);
    for (size_t i = 0; new != NULL &&i < new->count; i++)
        compare_key(arena, old, new, new->keys[i], out);
    return elsewhere;
}

/* ---- the figures ---- */

static bool is_wide(const struct interval *interval)
{
    return !((interval->high - interval->low) / 2 <= half_width_most * interval->median);
}

static const char *compare_figures(struct claim_check *check, const struct evaluation *then,
                                   const struct evaluation *now)
{
    const struct interval *old = &then->speedup, *new = &now->speedup;
    bool contrary = (then->finding == FINDING_FASTER && now->finding == FINDING_SLOWER) ||
                    (then->finding == FINDING_SLOWER && now->finding == FINDING_FASTER);
    check->answer = CLAIM_UNKNOWN;
    if (old->samples == 0)
        return "right here; its record has no speed-up to compare with";
    if (new->samples == 0)
        return "right here, but no speed-up could be measured";
    if (strcmp(then->baseline, now->baseline) != 0)
        return "right here, but measured against another baseline";
    if (now->finding == FINDING_NOISY || is_wide(new))
        return "right here, but this machine is too noisy now to compare the speed-ups";
    if (then->finding == FINDING_NOISY || is_wide(old))
        return "right here, but the recorded interval is too wide to be compared with anything";
    check->answer = CLAIM_DIFFERS;
    if (contrary)
        return check->elsewhere ? "right here, but faster on one of the two machines and slower on "
                                  "the other"
                                : "right here, but faster in one of the two records and slower in "
                                  "the other";
    if (new->high < old->low)
        return check->elsewhere ? "right here, but the speed-up is smaller than recorded, on "
                                  "another machine: the intervals do not overlap"
                                : "right here, but the speed-up is smaller than recorded: the "
                                  "intervals do not overlap";
    if (new->low > old->high)
        return check->elsewhere ? "right here, and the speed-up is larger than recorded, on "
                                  "another machine: the intervals do not overlap"
                                : "right here, and the speed-up is larger than recorded: the "
                                  "intervals do not overlap";
    check->answer = CLAIM_UNKNOWN;
    if (then->finding == FINDING_FASTER && now->finding != FINDING_FASTER)
        return "right here, and the intervals overlap, but that it is faster is not shown here";
    check->answer = CLAIM_HOLDS;
    return check->elsewhere ? "right here, on another machine, and the intervals overlap"
                            : "right here, and the intervals overlap";
}

struct claim_check claim_compare(struct arena *arena, const struct evaluation *then,
                                 const struct evaluation *now)
{
    struct claim_check check = {.answer = CLAIM_NOT_RIGHT};
    BUF_LOCAL(differs, DIFFERS_MOST);
    check.elsewhere = compare_machines(arena, then, now, &differs);
    check.differs = arena_strdup(arena, buf_text(&differs));
    if (now->verdict == VERDICT_KERNEL)
        check.why = compare_figures(&check, then, now);
    else
        check.why = printable(arena_printf(arena, "%s at %s: %.*s", verdict_name(now->verdict),
                                           stage_name(now->stage), (int)strcspn(now->reason, "\n"),
                                           now->reason));
    return check;
}

static void put_figures(const char *key, const struct evaluation *evaluation, struct json *json)
{
    const struct interval *speedup = &evaluation->speedup;
    json_put_object(json, key);
    json_put_text(json, "finding", finding_name(evaluation->finding));
    json_put_text(json, "baseline", evaluation->baseline);
    json_put_real(json, "time_ns", evaluation->time_ns.median);
    json_put_real(json, "speedup", speedup->median);
    json_put_real(json, "low", speedup->low);
    json_put_real(json, "high", speedup->high);
    json_object_end(json);
}

void claim_put(const struct claim_check *check, const struct evaluation *then,
               const struct evaluation *now, struct json *json)
{
    json_put_text(json, "answer", claim_answer_name(check->answer));
    json_put_bool(json, "right", check->answer != CLAIM_NOT_RIGHT);
    json_put_text(json, "why", check->why);
    json_put_bool(json, "elsewhere", check->elsewhere);
    json_put_text(json, "differs", check->differs);
    put_figures("then", then, json);
    put_figures("now", now, json);
}
