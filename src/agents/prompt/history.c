/* What was tried, for those who should not try it again: attempts of one title are one item; items
 * are grouped by what came of them, and within a group the most telling come first. Where there is
 * no room for all, the groups take turns, so that each keeps its best. */
#include "agents/ideas/novelty.h"
#include "agents/prompt/private.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { REASON_BYTES = 200, TUNED_SHOWN = 3, REST_BYTES = 48, CATEGORIES = 8 };

enum group {
    GROUP_WINS,
    GROUP_NOISE,
    GROUP_SLOWER,
    GROUP_FIRST,
    GROUP_WRONG,
    GROUP_FAILED,
    GROUP_SAME,
    GROUPS
};

static const char *const headings[GROUPS] = {
    [GROUP_WINS] = "Faster than what they started from:\n",
    [GROUP_NOISE] = "Right, and as fast as what they started from within the noise:\n",
    [GROUP_SLOWER] = "Right, but slower:\n",
    [GROUP_FIRST] = "Right, and from no parent (starts, earlier runs' kernels, first kernels):\n",
    [GROUP_WRONG] = "Gave a wrong result:\n",
    [GROUP_FAILED] = "Did not work (did not compile, crashed, hung):\n",
    [GROUP_SAME] = "Not tested: what was written is a source that was there before:\n"};

struct item {
    const struct prompt_attempt *best; /* the one that came furthest */
    const char *reason;                /* of the last one that came to nothing */
    enum group group;
    size_t tries, last; /* last: index in the history */
    double likeness;    /* to the idea at hand */
    bool tuning, shown;
};

static bool is(const char *text, const char *word)
{
    return text != NULL && strcmp(text, word) == 0;
}

static bool has(const char *text)
{
    return text != NULL && *text != '\0';
}

/* Over its parent; what has no parent to be compared with, over the baseline. */
static double gain_of(const struct prompt_attempt *attempt)
{
    return attempt->over_parent > 0 ? attempt->over_parent : attempt->speedup;
}

/* The headings and the table of categories both count by this. */
static enum group group_of(const struct material *material, const struct prompt_attempt *attempt)
{
    const double difference = 1 + prompt_noise(material->context);
    if (has(attempt->same_as))
        return GROUP_SAME;
    if (attempt->dropped) /* a kernel, or looked at and no more */
        return GROUP_SLOWER;
    if (is(attempt->state, "kept") && (attempt->given || attempt->over_parent <= 0))
        return GROUP_FIRST;
    if (is(attempt->state, "kept"))
        return attempt->over_parent > difference       ? GROUP_WINS
               : attempt->over_parent < 1 / difference ? GROUP_SLOWER
                                                       : GROUP_NOISE;
    return is(attempt->state, "rejected") ? GROUP_WRONG : GROUP_FAILED;
}

/* By time: speed-ups were taken against the baseline at different moments. */
static bool is_faster(const struct prompt_attempt *one, const struct prompt_attempt *other)
{
    if (one->time_ns > 0 && other->time_ns > 0)
        return one->time_ns < other->time_ns;
    return gain_of(one) > gain_of(other);
}

static void add_attempt(struct item *item, const struct prompt_attempt *attempt, enum group group,
                        size_t index)
{
    bool better = item->best == NULL || group < item->group ||
                  (group == item->group && is_faster(attempt, item->best));
    if (better) {
        item->best = attempt;
        item->group = group;
    }
    if ((group == GROUP_WRONG || group == GROUP_FAILED) && has(attempt->reason))
        item->reason = attempt->reason;
    item->tuning = is(attempt->category, "tuning");
    item->last = index;
    item->tries += group != GROUP_SAME;
}

static uint64_t title_hash(const char *text)
{
    uint64_t hash = 1469598103934665603u; /* FNV-1a */
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

/* Attempts of one title are one item. */
static size_t gather(const struct material *material, struct item *items)
{
    size_t slots = 2 * material->history_count + 1, count = 0;
    MEM_LOCAL size_t *table = mem_array(slots, sizeof *table); /* index of the item + 1 */
    for (size_t i = 0; i < material->history_count; i++) {
        const struct prompt_attempt *attempt = &material->history[i];
        size_t at = (size_t)(title_hash(attempt->title) % slots);
        while (table[at] != 0 && strcmp(items[table[at] - 1].best->title, attempt->title) != 0)
            at = (at + 1) % slots;
        if (table[at] == 0)
            table[at] = ++count;
        add_attempt(&items[table[at] - 1], attempt, group_of(material, attempt), i);
    }
    for (size_t i = 0; i < count && material->idea != NULL; i++)
        items[i].likeness = novelty_likeness(material->idea->title, items[i].best->title);
    return count;
}

/* By group; then what is like the idea at hand, what is no mere number, the fastest, the
 * latest. */
static int compare(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->tuning != b->tuning)
        return a->tuning ? 1 : -1;
    if (a->likeness != b->likeness)
        return a->likeness > b->likeness ? -1 : 1;
    bool ordered = a->group == GROUP_WINS || a->group == GROUP_FIRST;
    if (ordered && is_faster(a->best, b->best) != is_faster(b->best, a->best))
        return is_faster(a->best, b->best) ? -1 : 1;
    return a->last > b->last ? -1 : a->last < b->last;
}

static void put_clipped(const char *text, size_t most, struct buf *out)
{
    size_t length = strcspn(text, "\r\n");
    bool whole = length <= most;
    if (!whole)
        for (length = most; length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80; length--)
            ;
    buf_addf(out, "%.*s%s", (int)length, text, whole ? "" : "...");
}

/* What was first wrong with it is what the idea ran into, whatever it was mended to. */
static void put_repairs(const struct prompt_attempt *best, const char *separator, struct buf *out)
{
    if (!has(best->first_failure))
        return;
    buf_addf(out, "%safter %lld repair%s; first it ", separator, (long long)best->repairs,
             best->repairs == 1 ? "" : "s");
    put_clipped(best->first_failure, REASON_BYTES, out);
}

static void put_item(const struct prompt_context *context, const struct item *item, struct buf *out)
{
    char text[32];
    const struct prompt_attempt *best = item->best;
    buf_add_text(out, "- ");
    put_clipped(best->title, REASON_BYTES, out);
    buf_addf(out, " [%s, %s", best->category, best->id);
    if (item->tries > 1)
        buf_addf(out, ", best of %zu tries", item->tries);
    buf_add_char(out, ']');
    const char *separator = ": ";
    if (best->time_ns > 0) {
        buf_addf(out, "%s%s us", separator, prompt_digits(context, best->time_ns / 1e3, text));
        separator = ", ";
    }
    if (best->over_parent > 0) {
        buf_addf(out, "%s%sx its parent", separator,
                 prompt_digits(context, best->over_parent, text));
        separator = ", ";
    }
    if (best->speedup > 0) {
        buf_addf(out, "%s%sx the baseline", separator, prompt_digits(context, best->speedup, text));
        separator = "; ";
    }
    if (has(best->same_as)) {
        buf_addf(out, "%sended as %s's source", separator, best->same_as);
        separator = "; ";
    }
    if (item->reason != NULL) {
        buf_addf(out, "%s%s", separator, item->group < GROUP_WRONG ? "another try: " : "");
        put_clipped(item->reason, REASON_BYTES, out);
        separator = "; ";
    }
    put_repairs(best, separator, out);
    buf_add_char(out, '\n');
}

/* Numbers that were tuned say little one by one: of those the best few, and what did not help not
 * at all; the table of categories counts them. */
static bool worth_saying(const struct item *items, size_t at)
{
    return !items[at].tuning || items[at].group == GROUP_FIRST ||
           (items[at].group == GROUP_WINS && (at < TUNED_SHOWN || !items[at - TUNED_SHOWN].tuning));
}

/* Marks what fits: the groups take turns, until the first that does not. Returns how many do not.
 */
static size_t choose(const struct prompt_context *context, struct item *items, size_t count,
                     size_t most)
{
    size_t next[GROUPS + 1] = {0}, rest = 0;
    for (size_t i = 0; i < count; i++) {
        rest += worth_saying(items, i);
        for (size_t group = items[i].group + 1; group <= GROUPS; group++)
            next[group] = i + 1;
    }
    size_t ends[GROUPS];
    memcpy(ends, next + 1, sizeof ends);
    BUF_LOCAL(line, 4096);
    for (bool full = false, any = true; any && !full;) {
        any = false;
        for (size_t group = 0; group < GROUPS && !full; group++) {
            while (next[group] < ends[group] && !worth_saying(items, next[group]))
                next[group]++;
            if (next[group] >= ends[group])
                continue;
            struct item *item = &items[next[group]++];
            bool first = item == items || item[-1].group != item->group;
            buf_reset(&line);
            put_item(context, item, &line);
            size_t cost = line.length + (first ? strlen(headings[group]) : 0);
            full = cost > most;
            if (full)
                break;
            most -= cost;
            item->shown = any = true;
            rest--;
        }
    }
    return rest;
}

static void put_shown(const struct prompt_context *context, const struct item *items, size_t count,
                      struct buf *out)
{
    size_t group = GROUPS;
    for (size_t i = 0; i < count; i++) {
        if (!items[i].shown)
            continue;
        if (items[i].group != group)
            buf_add_text(out, headings[items[i].group]);
        group = items[i].group;
        put_item(context, &items[i], out);
    }
}

void put_history(const struct material *material, size_t most, struct buf *out)
{
    if (material->history_count == 0) {
        buf_add_text(out, "Nothing yet.\n");
        return;
    }
    struct item *items = mem_array(material->history_count, sizeof *items);
    size_t count = gather(material, items), rest = 0;
    qsort(items, count, sizeof *items, compare);
    BUF_LOCAL(whole, PROMPT_BYTES_MAX);
    const struct prompt_context *context = material->context;
    (void)choose(context, items, count, SIZE_MAX);
    put_shown(context, items, count, &whole);
    if (whole.length > most) {
        for (size_t i = 0; i < count; i++)
            items[i].shown = false;
        rest = choose(context, items, count, most > REST_BYTES ? most - REST_BYTES : 0);
        buf_reset(&whole);
        put_shown(context, items, count, &whole);
        buf_addf(&whole, "And %zu more that are not shown.\n", rest);
    }
    buf_add_text(out, buf_text(&whole));
    mem_free(items);
}

/* ---- which kinds of ideas pay here ---- */

struct tally {
    const char *name;
    size_t tried, kept, won, even;
    double best; /* over its parent */
};

static int compare_tallies(const void *left, const void *right)
{
    const struct tally *a = left, *b = right;
    double gain_a = a->won > 0 ? a->best : 0, gain_b = b->won > 0 ? b->best : 0;
    if (gain_a != gain_b)
        return gain_a > gain_b ? -1 : 1;
    if (a->tried != b->tried)
        return a->tried > b->tried ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void put_tallies(const struct prompt_context *context, struct tally *tallies, size_t kinds,
                        struct buf *text)
{
    char best[32];
    qsort(tallies, kinds, sizeof tallies[0], compare_tallies);
    if (tallies[0].tried == 0) /* starts alone */
        return;
    buf_add_text(text, "# Which kinds of ideas pay here\n");
    for (size_t k = 0; k < kinds && tallies[k].tried > 0; k++) {
        buf_addf(text, "- %s: %zu tried, %zu right, %zu faster than their parents", tallies[k].name,
                 tallies[k].tried, tallies[k].kept, tallies[k].won);
        if (tallies[k].best > 0)
            buf_addf(text, ", the best %sx", prompt_digits(context, tallies[k].best, best));
        if (tallies[k].even > 0)
            buf_addf(text, ", %zu within the noise", tallies[k].even);
        buf_add_char(text, '\n');
    }
    const char *separator = "- not tried yet: ";
    for (size_t k = 0; k < kinds; k++)
        if (tallies[k].tried == 0) {
            buf_addf(text, "%s%s", separator, tallies[k].name);
            separator = ", ";
        }
    buf_addf(text, "%s\n", *separator == ',' ? "\n" : "");
}

void put_categories(const struct material *material, size_t most, struct buf *out)
{
    struct tally tallies[CATEGORIES] = {{NULL, 0, 0, 0, 0, 0}};
    size_t kinds = 0;
    for (; kinds < CATEGORIES && idea_categories[kinds] != NULL; kinds++)
        tallies[kinds].name = idea_categories[kinds];
    for (size_t i = 0; i < material->history_count; i++) {
        const struct prompt_attempt *attempt = &material->history[i];
        for (size_t k = 0; k < kinds; k++) {
            if (!is(attempt->category, tallies[k].name))
                continue;
            enum group group = group_of(material, attempt);
            if (group == GROUP_SAME || attempt->given)
                continue;
            tallies[k].tried++;
            tallies[k].kept += is(attempt->state, "kept");
            tallies[k].won += group == GROUP_WINS;
            tallies[k].even += group == GROUP_NOISE;
            if (group == GROUP_WINS && attempt->over_parent > tallies[k].best)
                tallies[k].best = attempt->over_parent;
        }
    }
    BUF_LOCAL(text, 4096);
    if (material->history_count > 0)
        put_tallies(material->context, tallies, kinds, &text);
    const char *wanted = material->context->wanted;
    if (wanted != NULL && *wanted != '\0')
        buf_addf(&text, "%s%s\n", text.length == 0 ? "# Which kinds of ideas pay here\n" : "",
                 wanted);
    if (text.length <= most)
        buf_add(out, text.data, text.length);
}
