#include "report/words.h"

#include "base/digits.h"
#include "base/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *words_time(double ns, char text[32])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    int unit = 0;
    if (!isfinite(ns) || ns <= 0) {
        strcpy(text, "-");
        return text;
    }
    for (; unit < 3 && ns >= 1000; unit++)
        ns /= 1000;
    snprintf(text, 32, "%.*f %s", ns < 10 ? 3 : ns < 100 ? 2 : 1, ns, units[unit]);
    return text;
}

const char *words_ratio(double ratio, double low, double high, char text[32])
{
    return digits_of(ratio, low, high, text);
}

const char *words_time_in(double ns, double low, double high, char text[32])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    char number[32];
    int unit = 0;
    if (!isfinite(ns) || ns <= 0) {
        strcpy(text, "-");
        return text;
    }
    for (double left = ns; unit < 3 && left >= 1000; left /= 1000)
        unit++;
    digits_put(ns, digits_last(ns, low, high), 3 * unit, number);
    snprintf(text, 32, "%.20s %s", number, units[unit]);
    return text;
}

const char *words_time_by(double ns, double ratio, double low, double high, char text[32])
{
    bool known = ratio > 0 && low > 0 && high >= low;
    return known ? words_time_in(ns, ns * ratio / high, ns * ratio / low, text)
                 : words_time_in(ns, 0, 0, text);
}

const char *words_time_of(const struct value *interval, char text[32])
{
    return words_time_in(value_real(interval, "median", 0), value_real(interval, "low", 0),
                         value_real(interval, "high", 0), text);
}

const char *words_spread(double spread, char text[32])
{
    double percent = 100 * spread;
    snprintf(text, 32, "%.*f %%", percent < 1 ? 2 : percent < 10 ? 1 : 0, percent);
    return text;
}

const char *words_duration(double ms, char text[32])
{
    int64_t seconds = ms > 0 ? (int64_t)(ms / 1000) : 0;
    if (seconds >= 3600)
        snprintf(text, 32, "%" PRId64 ":%02d:%02d", seconds / 3600, (int)(seconds / 60 % 60),
                 (int)(seconds % 60));
    else
        snprintf(text, 32, "%d:%02d", (int)(seconds / 60), (int)(seconds % 60));
    return text;
}

const char *words_count(int64_t count, char text[32])
{
    if (count >= 999500)
        snprintf(text, 32, "%.3g M", (double)count / 1e6);
    else if (count >= 10000)
        snprintf(text, 32, "%.3g k", (double)count / 1e3);
    else
        snprintf(text, 32, "%" PRId64, count);
    return text;
}

const char *words_number(int64_t count, const char *noun, char text[48])
{
    snprintf(text, 48, "%" PRId64 " %.24s%s", count, noun, count == 1 ? "" : "s");
    return text;
}

const char *words_finding(const char *finding, bool win, double high)
{
    if (finding != NULL && *finding != '\0')
        return finding;
    return win ? "faster" : high > 0 && high < 1 ? "slower" : "no difference shown";
}

const char *words_over(const char *name, const char *definition)
{
    return definition && *definition && strcmp(name, "reference") == 0 ? definition : name;
}

const char *words_baseline(const char *name, const char *definition, char text[160])
{
    bool ours = words_over(name, definition) != name;
    snprintf(text, 160, "%.60s%s%.60s%s", name, ours ? " (" : "", ours ? definition : "",
             ours ? ")" : "");
    return text;
}

const char *words_left_out(const char *left_out, char text[160])
{
    text[0] = '\0';
    if (left_out != NULL && *left_out != '\0')
        snprintf(text, 160, "; left out: %.140s", left_out);
    return text;
}

const char *words_caveats(const char *unfit, const char *unconfined, char text[160])
{
    int length = 0;
    text[0] = '\0';
    if (unconfined != NULL && *unconfined != '\0')
        length = snprintf(text, 160, "; %.70s", unconfined);
    if (unfit != NULL && *unfit != '\0')
        snprintf(text + length, (size_t)(160 - length), "; UNFIT PROBLEM: a wrong kernel may pass");
    return text;
}

const char *words_dollars(int64_t micro, char text[32])
{
    double dollars = (double)micro / 1e6;
    snprintf(text, 32, "$%.*f", micro > 0 && micro < 10000 ? 4 : 2, dollars);
    return text;
}

static const char *local_words(uint64_t wall_ms, const char *format, char text[32])
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm local;
    localtime_r(&seconds, &local);
    if (strftime(text, 32, format, &local) == 0)
        text[0] = '\0';
    return text;
}

const char *words_clock(uint64_t wall_ms, char text[32])
{
    return local_words(wall_ms, "%a %H:%M", text);
}

const char *words_date(uint64_t wall_ms, char text[32])
{
    return local_words(wall_ms, "%Y-%m-%d %H:%M", text);
}

const char *words_pause(uint64_t since_ms, uint64_t until_ms, char text[96])
{
    char since[32], length[32];
    words_clock(since_ms, since);
    if (until_ms == 0)
        snprintf(text, 96, "since %s", since);
    else
        snprintf(text, 96, "%s for %s", since,
                 words_duration(until_ms > since_ms ? (double)(until_ms - since_ms) : 0, length));
    return text;
}

const char *words_spent(int64_t micro, int64_t cap, bool unpriced, char text[64])
{
    char spent[32], most[32];
    if (unpriced && micro == 0)
        snprintf(text, 64, "not priced");
    else if (unpriced)
        snprintf(text, 64, "at least %.28s: not all is priced", words_dollars(micro, spent));
    else if (cap > 0)
        snprintf(text, 64, "%.28s of %.28s", words_dollars(micro, spent), words_dollars(cap, most));
    else
        snprintf(text, 64, "%s", words_dollars(micro, spent));
    return text;
}

const char *words_outcomes(int64_t kept, int64_t rejected, int64_t failed, int64_t dropped,
                           int64_t outside, char text[160])
{
    char number[48];
    int length =
        snprintf(text, 160, "%s, %lld rejected, %lld failed", words_number(kept, "kernel", number),
                 (long long)rejected, (long long)failed);
    if (dropped > 0)
        length += snprintf(text + length, (size_t)(160 - length), ", %lld dropped at one shape",
                           (long long)dropped);
    if (outside > 0)
        snprintf(text + length, (size_t)(160 - length), ", %lld no point%s of the tune space",
                 (long long)outside, outside == 1 ? "" : "s");
    return text;
}

const char *words_lane(double busy, double waits, char text[80])
{
    int length = snprintf(text, 80, "lane busy %.0f %%", 100 * busy);
    if (waits >= 0.005)
        snprintf(text + length, (size_t)(80 - length), ", %.0f %% waiting for another twagent",
                 100 * waits);
    return text;
}

const char *words_error(const struct value *metrics, char text[160])
{
    const struct value *error = value_get(metrics, "error");
    text[0] = '\0';
    if (error != NULL && error->kind == VALUE_MAP)
        snprintf(text, 160, "%.2g of what is allowed, an honest computation's %.2g (%.40s inputs)",
                 value_real(error, "of_allowed", 0), value_real(error, "honest", 0),
                 value_text(error, "inputs", "?"));
    return text;
}

const char *words_reached(const struct value *metrics, char text[320])
{
    const struct value *reached = value_get(metrics, "checked_up_to");
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; reached != NULL && reached->kind == VALUE_MAP && i < reached->count; i++) {
        int64_t most = reached->items[i]->kind == VALUE_INT ? reached->items[i]->integer : 0;
        int more = snprintf(text + length, 320 - length, "%s%.40s=%" PRId64, i > 0 ? ", " : "",
                            reached->keys[i], most);
        if (more < 0 || (size_t)more >= 320 - length)
            break;
        length += (size_t)more;
    }
    text[length] = '\0';
    return text;
}

const char *words_package(const struct value *metrics, char text[96])
{
    const struct value *package = value_get(metrics, "package");
    text[0] = '\0';
    if (package != NULL && package->kind == VALUE_MAP)
        snprintf(text, 96, ", in %" PRId64 " calls of its package in %.40s",
                 value_int(package, "calls", 0), value_text(package, "in", "Python"));
    return text;
}

const char *words_clocks(const struct value *profile, char text[WORDS_CLOCKS])
{
    char event[32], span[32];
    const struct value *records = value_get(profile, "records");
    const char *why = value_text(records, "why", "");
    bool said = strcmp(why, value_text(profile, "why", "")) == 0; /* with the profile's source */
    text[0] = '\0';
    if (records == NULL || records->kind != VALUE_MAP)
        return text;
    if (value_int(records, "launches", 0) > 0)
        snprintf(text, WORDS_CLOCKS, "events %s, CUPTI's records %s",
                 words_time(value_real(records, "event_ns", 0), event),
                 words_time(value_real(records, "span_ns", 0), span));
    else
        snprintf(text, WORDS_CLOCKS, "events were checked with the wall clock alone%s%.240s",
                 said ? "" : ": ", said ? "" : why);
    return text;
}
