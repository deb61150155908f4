#include "base/options_parse.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DOLLAR 1e6 /* in what is stored */

struct unit {
    const char *name;
    int64_t factor;
};

static const struct unit duration_units[] = {{"ms", 1},      {"s", 1000},     {"m", 60000},
                                             {"h", 3600000}, {"d", 86400000}, {NULL, 0}};

#define KIB INT64_C(1024)
static const struct unit size_units[] = {
    {"", 1},
    {"B", 1},
    {"K", KIB},
    {"KiB", KIB},
    {"M", KIB *KIB},
    {"MiB", KIB *KIB},
    {"G", KIB *KIB *KIB},
    {"GiB", KIB *KIB *KIB},
    {"T", KIB *KIB *KIB *KIB},
    {"TiB", KIB *KIB *KIB *KIB},
    {NULL, 0},
};

/* A decimal number and a unit. The whole part is exact; the fraction goes by double, which is
 * enough for parts of one unit. */
static bool parse_with_unit(const char *text, const struct unit *units, int64_t *number)
{
    size_t whole_digits = strspn(text, "0123456789");
    const char *end = text + whole_digits;
    size_t fraction_digits = 0;
    if (*end == '.') {
        fraction_digits = strspn(end + 1, "0123456789");
        end += 1 + fraction_digits;
    }
    if (whole_digits == 0 || (end > text + whole_digits && fraction_digits == 0))
        return false;
    const struct unit *unit = units;
    while (unit->name != NULL && strcasecmp(unit->name, end) != 0)
        unit++;
    if (unit->name == NULL)
        return false;
    errno = 0;
    int64_t whole = strtoll(text, NULL, 10);
    if (errno != 0 || __builtin_mul_overflow(whole, unit->factor, &whole))
        return false;
    int64_t part = 0;
    if (fraction_digits > 0)
        part = llround(strtod(text + whole_digits, NULL) * (double)unit->factor);
    if (__builtin_add_overflow(whole, part, &whole))
        return false;
    *number = whole;
    return true;
}

int options_parse_duration(const char *text, int64_t *ms, struct err *err)
{
    if (strcmp(text, "0") == 0) {
        *ms = 0;
        return 0;
    }
    if (!parse_with_unit(text, duration_units, ms))
        return err_set(err, ERR_USAGE,
                       "expected a duration like 250ms, 90s, 10m or 1.5h, not \"%.80s\"", text);
    return 0;
}

int options_parse_size(const char *text, int64_t *bytes, struct err *err)
{
    if (!parse_with_unit(text, size_units, bytes))
        return err_set(err, ERR_USAGE, "expected a size like 4096, 64M or 2G, not \"%.80s\"", text);
    return 0;
}

/* In the largest unit that divides it, so that reading it gives the same number. */
static void write_with_unit(int64_t number, const struct unit *units, struct buf *out)
{
    const struct unit *best = &units[0];
    for (const struct unit *unit = units; unit->name != NULL; unit++)
        if (unit->factor > best->factor && number % unit->factor == 0 && number != 0)
            best = unit;
    buf_addf(out, "%" PRId64 "%s", number / best->factor, best->name);
}

static void write_real(double number, struct buf *out)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    buf_add_text(out, text);
}

static void write_bound(const struct option *option, double bound, struct buf *out)
{
    if (option->type == OPTION_DURATION)
        write_with_unit((int64_t)bound, duration_units, out);
    else if (option->type == OPTION_SIZE)
        write_with_unit((int64_t)bound, size_units, out);
    else
        write_real(bound, out);
}

static bool has_bounds(const struct option *option)
{
    bool number = option->type == OPTION_INT || option->type == OPTION_REAL ||
                  option->type == OPTION_DURATION || option->type == OPTION_SIZE ||
                  option->type == OPTION_DOLLARS;
    return number && (option->least != 0.0 || option->most != 0.0);
}

void option_write_range(const struct option *option, struct buf *out)
{
    if (option->choices != NULL) {
        buf_add_text(out, "one of ");
        for (const char *c = option->choices; *c != '\0'; c++)
            buf_add_text(out, *c == '|' ? ", " : (const char[]){*c, '\0'});
    } else if (has_bounds(option)) {
        bool open = option->most < option->least;
        buf_add_text(out, open ? "at least " : "from ");
        write_bound(option, option->least, out);
        if (open)
            return;
        buf_add_text(out, " to ");
        write_bound(option, option->most, out);
    }
}

static int refuse(const struct option *option, const char *what, const char *text, struct err *err)
{
    BUF_LOCAL(range, 250);
    option_write_range(option, &range);
    bool spaced = what[0] != '\0' && range.length > 0;
    err_set(err, ERR_USAGE, "expected %s%s%s, not \"%.80s\"", what, spaced ? " " : "",
            buf_text(&range), text);
    return -1;
}

static bool in_bounds(const struct option *option, double number)
{
    if (!has_bounds(option))
        return true;
    return number >= option->least && (number <= option->most || option->most < option->least);
}

static int store_bool(bool *field, const char *text, struct err *err)
{
    static const char *const truths[] = {"true", "yes", "on", "1"};
    static const char *const falsehoods[] = {"false", "no", "off", "0"};
    for (size_t i = 0; i < 4; i++) {
        bool truth = strcasecmp(text, truths[i]) == 0;
        if (truth || strcasecmp(text, falsehoods[i]) == 0) {
            *field = truth;
            return 0;
        }
    }
    return err_set(err, ERR_USAGE, "expected true or false, not \"%.80s\"", text);
}

static int store_int(const struct option *option, int64_t *field, const char *text, struct err *err)
{
    char *end;
    errno = 0;
    const char *digits = text + (*text == '-' || *text == '+');
    bool hex = digits[0] == '0' && digits[1] == 'x';
    int64_t number = strtoll(text, &end, hex ? 16 : 10);
    bool starts = digits[0] >= '0' && digits[0] <= '9'; /* strtoll skips blanks; we do not */
    if (!starts || *end != '\0' || errno != 0 || !in_bounds(option, (double)number))
        return refuse(option, "a whole number", text, err);
    *field = number;
    return 0;
}

static int store_real(const struct option *option, double *field, const char *text, struct err *err)
{
    char *end;
    bool starts = *text != '\0' && strchr("+-.0123456789", *text) != NULL;
    double number = strtod(text, &end);
    if (!starts || *end != '\0' || !isfinite(number) || !in_bounds(option, number))
        return refuse(option, "a number", text, err);
    *field = number;
    return 0;
}

/* A cap that is too small to be one millionth is still a cap. */
static int store_dollars(const struct option *option, int64_t *field, const char *text,
                         struct err *err)
{
    double dollars;
    if (store_real(option, &dollars, text, err) != 0)
        return -1;
    *field = dollars > 0 ? (int64_t)fmax(1, round(dollars * DOLLAR)) : 0;
    return 0;
}

/* Its place among the choices, or -1. */
static int choice_index(const char *choices, const char *text)
{
    size_t length = strlen(text);
    int index = 0;
    for (const char *at = choices; at != NULL; at = strchr(at, '|'), index++) {
        at += *at == '|';
        if (strcspn(at, "|") == length && strncmp(at, text, length) == 0)
            return index;
    }
    return -1;
}

static void write_choice(const char *choices, int index, struct buf *out)
{
    for (; index > 0; index--)
        choices = strchr(choices, '|') + 1;
    buf_add(out, choices, strcspn(choices, "|"));
}

static int store_unit(const struct option *option, int64_t *field, const char *text,
                      struct err *err)
{
    int64_t number = 0;
    bool duration = option->type == OPTION_DURATION;
    if (duration && options_parse_duration(text, &number, err) != 0)
        return -1;
    if (!duration && options_parse_size(text, &number, err) != 0)
        return -1;
    if (!in_bounds(option, (double)number))
        return refuse(option, duration ? "a duration" : "a size", text, err);
    *field = number;
    return 0;
}

int option_store(const struct option *option, void *target, const char *text, struct arena *arena,
                 struct err *err)
{
    void *field = (char *)target + option->offset;
    switch (option->type) {
    case OPTION_BOOL:
        return store_bool((bool *)field, text, err);
    case OPTION_INT:
        return store_int(option, (int64_t *)field, text, err);
    case OPTION_REAL:
        return store_real(option, (double *)field, text, err);
    case OPTION_CHOICE:
    case OPTION_ENUM:
        if (choice_index(option->choices, text) < 0)
            return refuse(option, "", text, err);
        if (option->type == OPTION_ENUM)
            *(int *)field = choice_index(option->choices, text);
        else
            *(const char **)field = arena_strdup(arena, text);
        return 0;
    case OPTION_TEXT:
        *(const char **)field = arena_strdup(arena, text);
        return 0;
    case OPTION_DOLLARS:
        return store_dollars(option, (int64_t *)field, text, err);
    case OPTION_DURATION:
    case OPTION_SIZE:
        return store_unit(option, (int64_t *)field, text, err);
    }
    return err_set(err, ERR_USAGE, "unknown type of option %s", option->name);
}

bool option_write(const struct option *option, const void *target, struct buf *out)
{
    const char *field = (const char *)target + option->offset;
    const char *text;
    switch (option->type) {
    case OPTION_BOOL:
        buf_add_text(out, *(const bool *)field ? "true" : "false");
        return true;
    case OPTION_INT:
        buf_addf(out, "%" PRId64, *(const int64_t *)(const void *)field);
        return true;
    case OPTION_REAL:
        write_real(*(const double *)(const void *)field, out);
        return true;
    case OPTION_TEXT:
    case OPTION_CHOICE:
        text = *(const char *const *)(const void *)field;
        if (text != NULL)
            buf_add_text(out, text);
        return text != NULL;
    case OPTION_ENUM:
        write_choice(option->choices, *(const int *)(const void *)field, out);
        return true;
    case OPTION_DOLLARS:
        write_real((double)*(const int64_t *)(const void *)field / DOLLAR, out);
        return true;
    case OPTION_DURATION:
        write_with_unit(*(const int64_t *)(const void *)field, duration_units, out);
        return true;
    case OPTION_SIZE:
        write_with_unit(*(const int64_t *)(const void *)field, size_units, out);
        return true;
    }
    return false;
}

const char *option_metavar(const struct option *option)
{
    static const char *const metavars[] = {
        [OPTION_INT] = "N",         [OPTION_REAL] = "NUMBER",       [OPTION_TEXT] = "TEXT",
        [OPTION_CHOICE] = "CHOICE", [OPTION_DURATION] = "DURATION", [OPTION_SIZE] = "SIZE",
        [OPTION_ENUM] = "CHOICE",   [OPTION_DOLLARS] = "DOLLARS",
    };
    if (option->type == OPTION_BOOL)
        return NULL;
    return option->metavar != NULL ? option->metavar : metavars[option->type];
}
