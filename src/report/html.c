/* report/html: the report as one page: nothing fetched, readable in the dark and on a phone. Every
 * text from a run goes through escape(), or by JSON into the page's own script, which puts it there
 * as text: a candidate's source may hold anything. */
#include "report/report.h"
#include "report/words.h"

#include "base/json.h"
#include "base/random.h"
#include "base/utf8.h"
#include "eval/data/stats.h"
#include "report/page_css_text.h"
#include "report/page_js_text.h"

#include <stdio.h>
#include <string.h>

/* What would hide or turn the writing round is shown as its number. */
static void put_character(struct buf *out, const char **text)
{
    uint32_t hidden;
    size_t length = utf8_shown(*text, strnlen(*text, 4), &hidden);
    if (length == 0)
        buf_add_text(out, "\xEF\xBF\xBD");
    else if (hidden && hidden != '\n' && hidden != '\t')
        buf_addf(out, "\\u%04x", hidden);
    else
        buf_add(out, *text, length);
    *text += length > 1 ? length - 1 : 0;
}

static void escape(struct buf *out, const char *text)
{
    for (; text && *text; text++) {
        switch (*text) {
        case '<':
            buf_add_text(out, "&lt;");
            break;
        case '>':
            buf_add_text(out, "&gt;");
            break;
        case '&':
            buf_add_text(out, "&amp;");
            break;
        case '"':
            buf_add_text(out, "&quot;");
            break;
        default:
            put_character(out, &text);
        }
    }
}

struct report_status report_status(const struct report *report)
{
    const struct value *evaluation = report->evaluation;
    if (report->best == NULL)
        return (struct report_status){"no kernel", "none"};
    if (*value_text(evaluation, "unconfined", "") != '\0')
        return (struct report_status){"not sandboxed", "warn"};
    if (*value_text(evaluation, "unfit", "") != '\0')
        return (struct report_status){"unfit problem", "warn"};
    if (!report->final)
        return (struct report_status){"not verified", "warn"};
    if (strcmp(value_text(evaluation, "finding", ""), finding_name(FINDING_NOISY)) == 0)
        return (struct report_status){"too noisy to say", "warn"};
    if (value_bool(evaluation, "win", false))
        return (struct report_status){"verified win", "win"};
    return (struct report_status){"verified: no win", "none"};
}

static void fact(const char *name, const char *text, struct buf *out)
{
    if (text == NULL || *text == '\0')
        return;
    buf_addf(out, "<dt>%s</dt><dd>", name);
    escape(out, text);
    buf_add_text(out, "</dd>\n");
}

/* "61 % of the memory roof" */
static void roof(const struct report *report, struct buf *out)
{
    const struct value *roofline = value_at(report->evaluation, "metrics.roofline");
    double share = value_real(roofline, "share_of_limit", 0);
    const char *limit = value_text(roofline, "limit", "");
    if (share > 0 && *limit)
        buf_addf(out, "<dt>roof</dt><dd>%.0f %% of the %s roof, as measured here</dd>\n",
                 100 * share, strcmp(limit, "memory") == 0 ? "memory" : "compute");
}

static void checked(const struct report *report, struct buf *out)
{
    const struct value *checks = value_get(report->evaluation, "checks");
    const struct value *metrics = value_get(report->evaluation, "metrics");
    char words[320], text[288], package[96];
    snprintf(text, sizeof text, "%lld of %lld checks passed%s%s",
             (long long)value_int(checks, "passed", 0), (long long)value_int(checks, "total", 0),
             report->final ? ", again in fresh processes with fresh seeds" : "",
             words_package(metrics, package));
    fact("checked", checks != NULL ? text : NULL, out);
    fact("checked up to", words_reached(metrics, words), out);
    fact("error", words_error(metrics, words), out);
}

static void machine(const struct report *report, struct buf *out)
{
    const struct value *device = value_get(report->evaluation, "device");
    const char *gpu = value_text(device, "gpu", NULL);
    if (gpu == NULL && report->row_count > 0)
        gpu = report->rows[0].device;
    fact("machine", gpu, out);
}

static void first_screen(const struct report *report, struct buf *out)
{
    char text[160], took[32], when[96], pause[512];
    buf_add_text(out, "<dl>\n");
    fact("shape", report->dims, out);
    machine(report, out);
    checked(report, out);
    roof(report, out);
    snprintf(text, sizeof text, "%s, took %s, %zu evaluated, lane busy %.0f %%", report->started,
             words_duration(report->elapsed_ms, took), report->count, 100 * report->lane_busy);
    fact("search", text, out);
    fact("models", report->models, out);
    fact("cost",
         report->spent    ? report->spent
         : report->models ? "no price is known of the answers"
                          : "nothing was asked of a model",
         out);
    for (size_t i = 0; i < report->asked_count; i++)
        fact("asked", report->asked[i], out);
    for (size_t i = 0; i < report->pause_count; i++) {
        snprintf(pause, sizeof pause, "%s: %.380s",
                 words_pause(report->pauses[i].since_ms, report->pauses[i].until_ms, when),
                 report->pauses[i].reason);
        fact("paused", pause, out);
    }
    BUF_LOCAL(refused, 4096);
    report_refused(report, &refused);
    fact("refused", buf_text(&refused), out);
    fact("ended", report->stopped ? report->stopped : "all rounds done", out);
    fact("noise", value_text(report->evaluation, "noise", ""), out);
    if (report->best != NULL) {
        snprintf(text, sizeof text, "twagent show %.40s --source -o kernel%.16s", report->best,
                 report_suffix(report));
        fact("take the kernel", text, out);
    }
    fact("go on", report->resume, out);
    buf_add_text(out, "</dl>\n");
}

/* On the first screen; the page's script draws it, or else this stands. */
static void chart(const struct report *report, struct buf *out)
{
    if (report->count == 0)
        return;
    buf_add_text(out, "<div id=\"chart\"></div>\n<noscript><h2>Best so far</h2>\n");
    report_chart(report, out);
    buf_add_text(out,
                 "<p class=\"soft\">A dot is a kernel as the search measured it: the lower end "
                 "of its 95 % interval over ");
    escape(out, words_over(report->against, report->definition));
    buf_addf(out,
             "; the search selects by times. The large one is the champion; red marks are "
             "candidates that were refused.%s</p>\n</noscript>\n",
             report->final ? " The band is the final measurement's interval. The search picks the "
                             "luckiest of many, so that its dot is apt to "
                             "lie higher."
                           : "");
}

static void put_lines(const char *const *lines, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++)
        buf_add_text(out, lines[i]);
}

#define PUT_LINES(lines, out) put_lines(lines, sizeof(lines) / sizeof(lines)[0], out)

static void head(const struct report *report, const char *nonce, struct buf *out)
{
    char took[32];
    const struct report_status status = report_status(report);
    buf_addf(out,
             "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
             "'nonce-%s'; script-src 'nonce-%s'; base-uri 'none'; form-action 'none'\">"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>",
             nonce, nonce);
    escape(out, report->run);
    buf_add_char(out, ' ');
    escape(out, report->problem);
    buf_addf(out, "</title><style nonce=\"%s\">\n", nonce);
    PUT_LINES(page_css, out);
    buf_addf(out, "</style></head><body%s>\n<h1>",
             strcmp(status.kind, "win") == 0 ? " class=\"is-win\"" : "");
    escape(out, report->problem);
    buf_add_text(out, " <span class=\"soft\">");
    escape(out, report->run);
    buf_addf(out, "</span> <span class=\"badge %s\">%s</span></h1>\n<p class=\"outcome\">",
             status.kind, status.word);
    if (value_real(value_get(report->evaluation, "time_ns"), "median", 0) > 0)
        buf_addf(out, "%s: ", words_time_of(value_get(report->evaluation, "time_ns"), took));
    escape(out, report->outcome);
    buf_add_text(out, "</p>\n");
    chart(report, out);
    buf_addf(out, "<p class=\"soft\">%s ", report_kind(report));
    escape(out, report->description);
    buf_add_text(out, "</p>\n");
    first_screen(report, out);
}

static void interval_cells(const struct value *interval, const char *unit, const char *name,
                           struct buf *out)
{
    char a[32], b[32], c[32];
    double median = value_real(interval, "median", 0), low = value_real(interval, "low", 0),
           high = value_real(interval, "high", 0);
    buf_addf(out, "<td class=\"n\" data-name=\"%s\">%s%s</td><td class=\"n\" data-name=\"95 %%\">",
             name, *unit ? words_ratio(median, low, high, a) : words_time_in(median, low, high, a),
             unit);
    if (!(high > low)) /* of one sample */
        buf_add_text(out, median > 0 ? "one sample" : "");
    else if (*unit)
        buf_addf(out, "%s to %s", words_ratio(low, low, high, b), words_ratio(high, low, high, c));
    else
        buf_addf(out, "%s to %s", words_time_in(low, low, high, b),
                 words_time_in(high, low, high, c));
    buf_add_text(out, "</td>");
}

static void baselines(const struct report *report, struct buf *out)
{
    const struct value *all = value_get(report->evaluation, "baselines");
    char spread[32], name[160];
    if (!all || all->count == 0)
        return;
    buf_addf(out,
             "<h2>Against each baseline</h2>\n<p class=\"soft\">Measured in alternating turns with "
             "the kernel, same inputs, same cores, cold caches. A win is an interval whose lower "
             "end exceeds 1 + max(1 %%, 3 x the A/A spread); the spread here is %s.</p>\n"
             "<div class=\"scroll\"><table class=\"plain\"><thead><tr><th>baseline</th><th "
             "class=\"n\">its time</th><th "
             "class=\"n\">95 %%</th>"
             "<th class=\"n\">speed-up</th><th class=\"n\">95 %%</th><th></th></tr></thead>\n",
             words_spread(value_real(report->evaluation, "spread", 0), spread));
    for (size_t i = 0; i < all->count; i++) {
        buf_add_text(out, "<tr><td>");
        escape(out, words_baseline(all->keys[i], report->definition, name));
        buf_add_text(out, "</td>");
        interval_cells(value_get(all->items[i], "ns"), "", "its time", out);
        interval_cells(value_get(all->items[i], "speedup"), "x", "speed-up", out);
        bool win = value_bool(all->items[i], "win", false);
        bool headline = strcmp(all->keys[i], value_text(report->evaluation, "baseline", "")) == 0;
        buf_addf(out, "<td><span class=\"%s\">%s%s</span></td></tr>\n",
                 win && headline ? "win" : "soft", headline ? "the headline: " : "by itself: ",
                 words_finding(value_text(all->items[i], "finding", ""), win,
                               value_real(value_get(all->items[i], "speedup"), "high", 0)));
    }
    buf_add_text(out, "</table></div>\n");
}

static void put_pairs(const struct value *object, struct buf *out)
{
    struct buf text;
    buf_init(&text, 1 << 16);
    for (size_t i = 0; object && object->kind == VALUE_MAP && i < object->count; i++) {
        buf_reset(&text);
        struct json json = {.out = &text};
        json_value(&json, object->items[i]);
        buf_add_text(out, "<tr><td>");
        escape(out, object->keys[i]);
        buf_add_text(out, "</td><td>");
        escape(out,
               object->items[i]->kind == VALUE_TEXT ? object->items[i]->text : buf_text(&text));
        buf_add_text(out, "</td></tr>\n");
    }
    buf_free(&text);
}

static void evidence(const struct report *report, struct buf *out)
{
    static const char *const parts[] = {"checks",  "time_ns", "hot_ns",  "tune",
                                        "metrics", "device",  "versions"};
    if (!report->evaluation)
        return;
    buf_add_text(out, "<h2>Evidence</h2>\n");
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const struct value *part = value_get(report->evaluation, parts[i]);
        if (!part || part->kind != VALUE_MAP || part->count == 0)
            continue;
        buf_addf(out, "<details%s><summary>%s</summary><table>\n", i < 2 ? " open" : "", parts[i]);
        put_pairs(part, out);
        buf_add_text(out, "</table></details>\n");
    }
}

static void final_row(const struct report *report, struct buf *out)
{
    const struct value *speedup = value_get(report->evaluation, "speedup");
    char time[32];
    if (!report->final)
        return;
    buf_add_text(out, "<tr class=\"champion\"><td>");
    escape(out, report->best);
    buf_addf(out, "</td><td>final</td><td></td><td class=\"n\">%s</td>",
             words_time_of(value_get(report->evaluation, "time_ns"), time));
    interval_cells(speedup, "x", "speed-up", out);
    buf_add_text(out, "<td>the final measurement, over ");
    escape(out, words_over(value_text(report->evaluation, "baseline", report->against),
                           report->definition));
    buf_add_text(out, ": fresh processes, fresh seeds</td></tr>\n");
}

static void candidates(const struct report *report, struct buf *out)
{
    enum { SHOWN = 500 };
    char time[32], middle[32], least[32], most[32];
    size_t from = report->count > SHOWN ? report->count - SHOWN : 0;
    buf_addf(out,
             "<h2>Every evaluation%s</h2>\n<p class=\"soft\">As the search measured it, to choose "
             "by.%s</p>\n<table><tr><th>id</th><th>from</th><th>what</th>"
             "<th class=\"n\">time</th><th class=\"n\">speed-up</th><th class=\"n\">95 %%</th>"
             "<th>idea, or why not</th></tr>\n",
             from ? " (the last 500)" : "",
             report->final
                 ? " The first line is the champion's final measurement, which the headline "
                   "and the evidence above are of."
                 : "");
    final_row(report, out);
    for (size_t i = from; i < report->count; i++) {
        const struct report_candidate *c = &report->candidates[i];
        buf_addf(out, "<tr%s><td>", c->champion ? " class=\"champion\"" : "");
        escape(out, c->id);
        buf_add_text(out, "</td><td>");
        escape(out, c->parent);
        buf_add_text(out, "</td><td><code>");
        escape(out, c->source);
        if (c->time_ns > 0)
            buf_addf(out,
                     "</code></td><td class=\"n\">%s</td><td class=\"n\">%sx</td>"
                     "<td class=\"n\">%s%s%s</td><td>",
                     words_time_by(c->time_ns, c->speedup, c->low, c->high, time),
                     words_ratio(c->speedup, c->low, c->high, middle),
                     c->high > c->low ? words_ratio(c->low, c->low, c->high, least) : "one sample",
                     c->high > c->low ? " to " : "",
                     c->high > c->low ? words_ratio(c->high, c->low, c->high, most) : "");
        else
            buf_add_text(out, "</code></td><td></td><td></td><td></td><td class=\"bad\">");
        if (strcmp(c->verdict, "kernel") != 0 || *c->reason) {
            escape(out, c->verdict);
            buf_add_text(out, ": ");
            escape(out, c->reason);
        } else {
            escape(out, c->idea);
        }
        buf_add_text(out, "</td></tr>\n");
    }
    buf_add_text(out, "</table>\n");
}

static void tuning(const struct tuning *found, struct buf *out)
{
    BUF_LOCAL(text, 8 << 20);
    report_tuning_text(found, &text);
    buf_add_text(out, "<h2>The tune</h2>\n<pre>");
    escape(out, buf_text(&text));
    buf_add_text(out, "</pre>\n");
}

/* For a browser that runs no script. */
static void without_script(const struct report *report, struct buf *out)
{
    if (report->count == 0)
        return;
    buf_add_text(out, "<noscript>\n");
    if (report->tuning)
        tuning(report->tuning, out);
    candidates(report, out);
    buf_add_text(out, "</noscript>\n");
}

/* "<" ends no script and begins no comment where it is written as a number. */
static void put_facts(const struct report *report, struct buf *out)
{
    struct buf facts;
    buf_init(&facts, (size_t)64 << 20);
    report_json(report, &facts);
    for (const char *at = buf_text(&facts); *at; at++)
        if (*at == '<')
            buf_add_text(out, "\\u003c");
        else
            buf_add_char(out, *at);
    buf_free(&facts);
}

void report_html(const struct report *report, struct buf *out)
{
    char nonce[40]; /* drawn after all texts of the run were written: none of them can name it */
    snprintf(nonce, sizeof nonce, "%016llx%016llx", (unsigned long long)random_seed(),
             (unsigned long long)random_seed());
    head(report, nonce, out);
    baselines(report, out);
    without_script(report, out);
    buf_add_text(out, "<main id=\"page\"></main>\n");
    evidence(report, out);
    if (report->source) {
        buf_add_text(out, "<h2>The kernel</h2>\n<pre>");
        escape(out, report->source);
        buf_add_text(out, "</pre>\n");
    }
    buf_addf(out, "<script nonce=\"%s\" type=\"application/json\" id=\"facts\">", nonce);
    put_facts(report, out);
    buf_addf(out, "</script>\n<script nonce=\"%s\">\n", nonce);
    PUT_LINES(page_js, out);
    buf_add_text(out, "</script></body></html>\n");
}
