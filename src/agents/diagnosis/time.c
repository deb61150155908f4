#include "agents/diagnosis/private.h"

#include <math.h>
#include <string.h>

static const struct value *list(const struct value *time, const char *key)
{
    const struct value *items = value_get(time, key);
    return items != NULL && items->kind == VALUE_LIST ? items : NULL;
}

static int64_t operations(const struct value *phase)
{
    return value_int(phase, "vector_arithmetic", 0) + value_int(phase, "scalar_arithmetic", 0);
}

static bool only_moves(const struct value *phase)
{
    return operations(phase) == 0 && value_int(phase, "stores", 0) > 0;
}

double time_moving_share(const struct value *time)
{
    const struct value *phases = list(time, "phases");
    double share = 0;
    for (size_t i = 0; phases != NULL && i < phases->count; i++)
        if (only_moves(phases->items[i]))
            share += value_real(phases->items[i], "share", 0);
    return phases != NULL ? share : NAN;
}

double time_library_share(const struct value *time, const char *name)
{
    const struct value *elsewhere = list(time, "elsewhere");
    double share = 0;
    for (size_t i = 0; elsewhere != NULL && i < elsewhere->count; i++)
        if (strncmp(value_text(elsewhere->items[i], "name", ""), name, strlen(name)) == 0)
            share += value_real(elsewhere->items[i], "share", 0);
    return elsewhere != NULL ? share : NAN;
}

/* Of a line on a GPU: the hardware's word for it is what guides use. */
static void say_line(const struct value *phase, struct buf *out)
{
    const char *text = value_text(phase, "text", NULL);
    const char *stall = value_text(phase, "stall", NULL);
    if (text != NULL)
        buf_addf(out, ": `%.100s`", text);
    buf_addf(out, " (%.60s", value_text(phase, "in", "?"));
    if (stall != NULL)
        buf_addf(out, ": %.0f %% %.30s", 100 * value_real(phase, "stall_share", 0), stall);
    buf_add_char(out, ')');
}

static void say_phase(const struct value *phase, struct buf *out)
{
    int64_t first = value_int(phase, "first_line", 0), last = value_int(phase, "last_line", 0);
    int64_t vectors = value_int(phase, "vector_arithmetic", 0);
    int64_t single = value_int(phase, "scalar_arithmetic", 0);
    buf_addf(out, "%.0f %% in ", 100 * value_real(phase, "share", 0));
    if (first > 0 && first == last)
        buf_addf(out, "line %lld", (long long)first);
    else if (first > 0)
        buf_addf(out, "lines %lld to %lld", (long long)first, (long long)last);
    else
        buf_add_text(out, "a loop");
    if (value_get(phase, "file") != NULL)
        buf_addf(out, " of %.48s", value_text(phase, "file", "?"));
    if (value_get(phase, "stall") != NULL) { /* null: no warp waits there */
        say_line(phase, out);
        return;
    }
    buf_addf(out, " (%.60s: ", value_text(phase, "in", "?"));
    if (only_moves(phase))
        buf_add_text(out, "only moves data");
    else if (operations(phase) == 0)
        buf_add_text(out, "no floating-point operations");
    if (vectors > 0)
        buf_addf(out, "%lld operations on vectors of %lld bytes", (long long)vectors,
                 (long long)value_int(phase, "vector_bytes", 0));
    if (single > 0)
        buf_addf(out, "%s%lld on single numbers", vectors > 0 ? ", " : "", (long long)single);
    buf_add_char(out, ')');
}

void time_say(const struct value *time, struct buf *out)
{
    const struct value *phases = list(time, "phases"), *elsewhere = list(time, "elsewhere");
    const char *separator = "- where the time goes: ";
    double rest = 1;
    for (size_t i = 0; phases != NULL && i < phases->count; i++, separator = ", ") {
        buf_add_text(out, separator);
        say_phase(phases->items[i], out);
        rest -= value_real(phases->items[i], "share", 0);
    }
    for (size_t i = 0; elsewhere != NULL && i < elsewhere->count; i++, separator = ", ") {
        buf_addf(out, "%s%.0f %% in %.40s", separator,
                 100 * value_real(elsewhere->items[i], "share", 0),
                 value_text(elsewhere->items[i], "name", "?"));
        rest -= value_real(elsewhere->items[i], "share", 0);
    }
    if (*separator == ',' && rest > 0.05)
        buf_addf(out, ", %.0f %% %s", 100 * rest,
                 elsewhere != NULL ? "outside of loops, or in short ones" : "in other lines");
    if (*separator == ',')
        buf_add_char(out, '\n');
}
