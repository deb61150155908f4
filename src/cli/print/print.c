#include "cli/print/print.h"

#include "agents/diagnosis/diagnosis.h"
#include "base/arena.h"
#include "base/buf.h"
#include "report/words.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static void print_interval_time(const char *label, const struct interval *interval, FILE *out)
{
    char median[32], low[32], high[32], samples[48], processes[48] = "";
    if (interval->samples == 0)
        return;
    words_number((int64_t)interval->samples, "sample", samples);
    if (interval->processes > 0)
        snprintf(processes, sizeof processes, " of %zu process%s", interval->processes,
                 interval->processes == 1 ? "" : "es");
    if (!stats_has_ends(interval)) {
        fprintf(out, "  %-10s %s   (%s%s: no interval)\n", label,
                words_time_in(interval->median, interval->median, interval->median, median),
                samples, processes);
        return;
    }
    fprintf(out, "  %-10s %s   (95 %%: %s to %s; %s%s)\n", label,
            words_time_in(interval->median, interval->low, interval->high, median),
            words_time_in(interval->low, interval->low, interval->high, low),
            words_time_in(interval->high, interval->low, interval->high, high), samples, processes);
}

/* What a call takes that does nothing. */
static void print_call(const struct evaluation *evaluation, FILE *out)
{
    const struct interval *call = &evaluation->call_ns;
    char median[32], low[32], high[32];
    if (call->samples == 0)
        return;
    fprintf(out, "  %-10s a call itself takes %s (95 %%: %s to %s), %s\n", "call",
            words_time_in(call->median, call->low, call->high, median),
            words_time_in(call->low, call->low, call->high, low),
            words_time_in(call->high, call->low, call->high, high),
            evaluation->call_taken ? "taken off" : "which is in all of these times");
}

static void print_roofline(const struct value *roof, FILE *out)
{
    if (!roof)
        return;
    double share = value_real(roof, "share_of_limit", 0);
    const char *limit = value_text(roof, "limit", NULL);
    fprintf(out, "  %-10s ", "roofline");
    if (limit != NULL)
        fprintf(out, "%s bound, at %.1f %% of that roof: ", limit, 100 * share);
    double gflops = value_real(roof, "gflops_per_s", 0);
    fprintf(out, "%.1f GB/s", value_real(roof, "gbytes_per_s", 0));
    if (gflops > 0) /* else the problem does not say how many there are */
        fprintf(out, ", %.1f GFLOP/s", gflops);
    fprintf(out, "%s\n",
            value_bool(roof, "under_load", false) || share > 1.1
                ? " (the roof was measured under load)"
                : "");
}

static void print_hot_loop(const struct value *loop, FILE *out)
{
    static const char *const counts[] = {
        "vector_fma", "vector_arithmetic", "loads", "stores", "shuffles",
        "gathers",    "scalar_arithmetic", "spills"};
    if (!loop || loop->kind != VALUE_MAP)
        return;
    long long bytes = value_int(loop, "vector_bytes", 0);
    fprintf(out, "  %-10s %s: %lld instructions, ", "hot loop", value_text(loop, "function", "?"),
            (long long)value_int(loop, "instructions", 0));
    if (bytes > 0)
        fprintf(out, "%lld-byte vectors", bytes);
    else
        fputs("no vectors", out);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (value_int(loop, counts[i], 0) > 0)
            fprintf(out, ", %lld %s", (long long)value_int(loop, counts[i], 0), counts[i]);
    fputc('\n', out);
}

static void print_remarks(const struct value *remarks, FILE *out)
{
    size_t shown = 0, missed = 0;
    for (size_t i = 0; remarks && i < remarks->count; i++)
        missed += strcmp(value_text(remarks->items[i], "kind", ""), "missed") == 0;
    for (size_t i = 0; remarks && i < remarks->count && shown < 4; i++) {
        const struct value *remark = remarks->items[i];
        if (strcmp(value_text(remark, "kind", ""), "missed") != 0)
            continue;
        fprintf(out, "  %-10s line %lld: %s\n", shown ? "" : "remarks",
                (long long)value_int(remark, "line", 0), value_text(remark, "text", ""));
        shown++;
    }
    if (missed > shown)
        fprintf(out, "  %-10s and %zu more (--json has all)\n", "", missed - shown);
}

/* In one line: the lines of the source, or the libraries, that it is in; or why nobody knows. */
static void print_time(const struct value *time, FILE *out)
{
    static const char label[] = "- where the time goes: ";
    const char *why = value_text(time, "why", NULL);
    BUF_LOCAL(text, 1 << 16);
    time_say(time, &text);
    const char *line = buf_text(&text);
    if (strncmp(line, label, sizeof label - 1) == 0)
        fprintf(out, "  %-10s %s", "time in", line + sizeof label - 1);
    else if (why)
        fprintf(out, "  %-10s not known: %s\n", "time in", why);
}

/* How near the bound it comes, beside what an honest computation needs; and the largest numbers of
 * dims at which it was called. */
static void print_error(const struct value *metrics, FILE *out)
{
    char text[320];
    if (*words_error(metrics, text))
        fprintf(out, "  %-10s %s\n", "error", text);
    if (*words_reached(metrics, text))
        fprintf(out, "  %-10s up to %s\n", "checked", text);
}

/* The main lines of the profile and the notes; --json has everything. How near the bounds it came
 * is of the checks that passed, so that it is said of kernels alone. */
static void print_metrics(const char *text, bool kernel, FILE *out)
{
    ARENA_LOCAL(arena);
    struct value *metrics = NULL;
    if (value_parse_json(arena, "metrics", text, strlen(text), &metrics, NULL) == 0) {
        const struct value *notes = value_get(metrics, "notes");
        char clocks[WORDS_CLOCKS];
        if (kernel)
            print_error(metrics, out);
        print_roofline(value_get(metrics, "roofline"), out);
        if (*words_clocks(value_get(metrics, "profile"), clocks))
            fprintf(out, "  %-10s %s\n", "clocks", clocks);
        print_hot_loop(value_get(metrics, "hot_loop"), out);
        print_time(value_get(metrics, "time"), out);
        print_remarks(value_get(metrics, "remarks"), out);
        for (size_t i = 0; notes && i < notes->count; i++)
            fprintf(out, "  %-10s %s\n", i ? "" : "notes", notes->items[i]->text);
    }
}

/* Length of "candidate.c" before a line's number: what compilers know a source as. 0: no such. */
static size_t compiled_as(const char *line)
{
    static const char stem[] = "candidate.";
    size_t length = sizeof stem - 1;
    if (strncmp(line, stem, length) != 0)
        return 0;
    length += strspn(line + length, "cu");
    return line[length] == ':' || line[length] == '(' ? length : 0;
}

/* What the first line has said already is not said again. */
static void print_details(const char *details, const char *reason, const char *name, FILE *out)
{
    if (!details)
        return;
    size_t said = strcspn(details, "\n");
    if (said > 0 && strncmp(details, reason, said) == 0)
        details += said + (details[said] == '\n');
    while (*details) {
        const char *end = strchrnul(details, '\n');
        size_t own = name ? compiled_as(details) : 0;
        ARENA_LOCAL(arena);
        char *line = arena_strndup(arena, details + own, (size_t)(end - details) - own);
        err_one_line(line); /* what a candidate's own process said may hold escape sequences */
        fprintf(out, "    %s%s\n", own ? name : "", line);
        details = *end ? end + 1 : end;
    }
}

void print_evaluation(const struct evaluation *evaluation, FILE *out)
{
    print_evaluation_of(evaluation, NULL, out);
}

void print_evaluation_of(const struct evaluation *evaluation, const char *name, FILE *out)
{
    fprintf(out, "%s", verdict_name(evaluation->verdict));
    if (evaluation->verdict != VERDICT_KERNEL)
        fprintf(out, " at %s", stage_name(evaluation->stage));
    if (*evaluation->reason)
        fprintf(out, ": %s", evaluation->reason);
    char caveats[160];
    fprintf(out, "%s\n", words_caveats(evaluation->unfit, evaluation->unconfined, caveats));
    if (evaluation->unfit && *evaluation->unfit)
        fprintf(out, "  %-10s %s\n", "unfit", evaluation->unfit);
    if (evaluation->verdict != VERDICT_KERNEL)
        print_details(evaluation->details, evaluation->reason, name, out);
    print_interval_time("time", &evaluation->time_ns, out);
    print_interval_time("hot", &evaluation->hot_ns, out);
    print_call(evaluation, out);
    if (evaluation->baseline_ns.samples) {
        print_interval_time("baseline", &evaluation->baseline_ns, out);
        const char *finding = finding_name(evaluation->finding);
        char left_out[160];
        bool unclean =
            evaluation->finding == FINDING_FASTER && !(evaluation->stage_ms[STAGE_SANITIZE] > 0);
        const struct interval *ratio = &evaluation->speedup;
        char median[32], low[32], high[32], spread[32];
        fprintf(out, "  %-10s %sx %s   (95 %%: %s to %s; A/A spread %s)%s%s%s%s%s\n", "speed-up",
                words_ratio(ratio->median, ratio->low, ratio->high, median), evaluation->baseline,
                words_ratio(ratio->low, ratio->low, ratio->high, low),
                words_ratio(ratio->high, ratio->low, ratio->high, high),
                words_spread(evaluation->spread, spread), *finding ? ": " : "", finding,
                unclean ? ", not sanitized" : "", words_left_out(evaluation->left_out, left_out),
                caveats);
    }
    if (evaluation->noise && *evaluation->noise)
        fprintf(out, "  %-10s %s\n", "noise", evaluation->noise);
    if (evaluation->checks_total > 0)
        fprintf(out, "  %-10s %lld of %lld passed\n", "checks",
                (long long)evaluation->checks_passed, (long long)evaluation->checks_total);
    double total = 0;
    for (int i = 0; i < STAGES; i++)
        total += evaluation->stage_ms[i];
    fprintf(out, "  %-10s %.0f ms%s", "spent", total, total >= 0.5 ? ":" : "");
    for (int i = 0; i < STAGES; i++)
        if (evaluation->stage_ms[i] >= 0.5)
            fprintf(out, " %s %.0f", stage_name((enum stage)i), evaluation->stage_ms[i]);
    fputc('\n', out);
    print_metrics(evaluation->metrics, evaluation->verdict == VERDICT_KERNEL, out);
}

void print_evaluation_json(const struct evaluation *evaluation, FILE *out)
{
    JSON_LOCAL(json, text, 64 << 20);
    evaluation_to_json(evaluation, &json);
    fprintf(out, "%s\n", buf_text(&text));
}

FILE *words_begin(struct words *words)
{
    *words = (struct words){0};
    words->out = open_memstream(&words->text, &words->length);
    if (!words->out)
        abort(); /* as mem_alloc() does */
    return words->out;
}

void words_end(struct words *words, struct json *json)
{
    fclose(words->out);
    json_put_text(json, "text", words->text);
    free(words->text);
}

void print_put_words(const struct evaluation *evaluation, const char *name, struct json *json)
{
    struct words words;
    print_evaluation_of(evaluation, name, words_begin(&words));
    words_end(&words, json);
}

/* ---- to the terminal ---- */

bool print_draws(int descriptor)
{
    const char *term = getenv("TERM");
    return isatty(descriptor) == 1 && term && strcmp(term, "dumb") != 0;
}

bool print_colours(int descriptor)
{
    const char *no_color = getenv("NO_COLOR");
    return print_draws(descriptor) && !(no_color && *no_color);
}

/* Where a line goes on: beside what its label says; of prose and of what is quoted, a little to the
 * right. */
static size_t hanging(const char *line, size_t width)
{
    enum { INDENT = 13, NARROW = 2, QUOTED = 4 };
    size_t blanks = strspn(line, " ");
    const char *gap = strstr(line + blanks, "  ");
    if (width < 3 * INDENT)
        return NARROW;
    if (blanks == QUOTED)
        return QUOTED + NARROW;
    return blanks > 0 || (gap && gap < line + INDENT) ? INDENT : NARROW;
}

static void wrap(const char *text, size_t width, struct buf *out)
{
    while (*text) {
        size_t length = strcspn(text, "\n"), room = width, indent = hanging(text, width);
        while (length > room) {
            size_t cut = room;
            while (cut > room / 2 && text[cut] != ' ')
                cut--;
            bool blank = text[cut] == ' ';
            if (!blank) /* a long word; a character is not cut */
                for (cut = room; cut > 1 && ((unsigned char)text[cut] & 0xc0) == 0x80;)
                    cut--;
            buf_add(out, text, cut);
            buf_addf(out, "\n%*s", (int)indent, "");
            cut += blank;
            text += cut;
            length -= cut;
            room = width - indent;
        }
        buf_add(out, text, length);
        buf_add_char(out, '\n');
        text += length + (text[length] == '\n');
    }
}

void print_wrap(const char *text, struct buf *out)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 8;
    if (known)
        wrap(text, size.ws_col - 1U, out);
    else
        buf_add_text(out, text);
}

void print_lines(const char *text, bool json)
{
    BUF_LOCAL(wrapped, (size_t)256 << 20);
    if (!json)
        print_wrap(text, &wrapped);
    fputs(json ? text : buf_text(&wrapped), stdout);
}

void words_print(struct words *words)
{
    fclose(words->out);
    print_lines(words->text, false);
    free(words->text);
}
