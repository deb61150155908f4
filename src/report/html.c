/* report/html: the report as one page: no script, nothing fetched, readable in the dark. Every text
 * from a run goes through escape(): a candidate's source may hold anything. */
#include "report/report.h"
#include "report/words.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

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
            buf_add_char(out, *text);
        }
    }
}

static const char style[] =
    ":root{color-scheme:light dark;--ink:#1b1f24;--soft:#6a737d;--line:#d8dee4;--paper:#fff;"
    "--mark:#0a66c2;--win:#1a7f37;--bad:#b42318}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#8b949e;--line:#30363d;"
    "--paper:#0d1117;--mark:#58a6ff;--win:#3fb950;--bad:#f85149}}\n"
    "body{margin:2rem auto;max-width:60rem;padding:0 1rem;background:var(--paper);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}\n"
    "h1{font-size:1.5rem;margin:0}h2{font-size:1.05rem;margin:2rem 0 .5rem}\n"
    ".outcome{font-size:1.15rem;margin:.3rem 0 "
    "1rem}.win{color:var(--win)}.soft{color:var(--soft)}\n"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\n"
    "th,td{text-align:left;padding:.25rem .75rem .25rem 0;border-bottom:1px solid var(--line);"
    "vertical-align:top}td:nth-child(-n+2),td.n{white-space:nowrap}th{font-weight:600;color:var(--"
    "soft)}td.n,th.n{text-align:right}\n"
    "tr.champion td{font-weight:600}td.bad{color:var(--bad)}\n"
    "pre{overflow:auto;border:1px solid var(--line);padding:.8rem;font:13px/1.45 ui-monospace,"
    "monospace;max-height:40rem}code{font-family:ui-monospace,monospace}\n"
    "svg{width:100%;height:auto;font:12px system-ui,sans-serif}svg text{fill:var(--soft)}\n"
    ".grid{stroke:var(--line)}.one{stroke:var(--soft);stroke-dasharray:4 3}\n"
    ".kernel{fill:var(--mark);opacity:.55}.champion{fill:var(--win)}.failed{stroke:var(--bad)}\n"
    "rect.final{fill:var(--win);opacity:.18}svg text.final{fill:var(--win)}\n"
    ".best{fill:none;stroke:var(--mark);stroke-width:1.5}\n";

static void pauses(const struct report *report, struct buf *out)
{
    char when[96];
    if (report->pause_count == 0)
        return;
    buf_add_text(out, "<h2>Pauses</h2>\n<table>");
    for (size_t i = 0; i < report->pause_count; i++) {
        const struct report_pause *pause = &report->pauses[i];
        buf_addf(out, "<tr><td>%s</td><td>", words_pause(pause->since_ms, pause->until_ms, when));
        escape(out, pause->reason);
        buf_add_text(out, "</td></tr>\n");
    }
    buf_add_text(out, "</table>\n");
}

static void head(const struct report *report, struct buf *out)
{
    char took[32];
    buf_addf(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                  "<meta name=\"viewport\" content=\"width=device-width\"><title>");
    escape(out, report->run);
    buf_add_char(out, ' ');
    escape(out, report->problem);
    buf_addf(out, "</title><style>\n%s</style></head><body>\n<h1>", style);
    escape(out, report->problem);
    buf_addf(out, " <span class=\"soft\">");
    escape(out, report->run);
    bool win = report->final && value_bool(report->evaluation, "win", false);
    buf_addf(out, "</span></h1>\n<p class=\"outcome%s\">", win ? " win" : "");
    if (value_real(value_get(report->evaluation, "time_ns"), "median", 0) > 0)
        buf_addf(out, "%s: ", words_time_of(value_get(report->evaluation, "time_ns"), took));
    escape(out, report->outcome);
    buf_addf(out, "</p>\n<p class=\"soft\">%s</p>\n<p class=\"soft\">", report_kind(report));
    escape(out, report->description);
    buf_add_text(out, "<br>");
    escape(out, report->dims);
    buf_add_text(out, "<br>");
    escape(out, report->started);
    buf_addf(out, ", took %s, %zu evaluated, lane busy %.0f %%<br>",
             words_duration(report->elapsed_ms, took), report->count, 100 * report->lane_busy);
    const struct value *metrics = value_get(report->evaluation, "metrics");
    char words[320];
    if (*words_error(metrics, words)) {
        buf_add_text(out, "error: ");
        escape(out, words);
        buf_add_text(out, "<br>");
    }
    if (*words_reached(metrics, words)) {
        buf_add_text(out, "checked up to: ");
        escape(out, words);
        buf_add_text(out, "<br>");
    }
    buf_add_text(out, "ended: ");
    escape(out, report->stopped ? report->stopped : "all rounds done");
    if (report->failures) {
        buf_add_text(out, "<br>refused: ");
        escape(out, report->failures);
    }
    if (report->models) {
        buf_add_text(out, "<br>models: ");
        escape(out, report->models);
    }
    if (report->spent) {
        buf_add_text(out, "<br>spent: ");
        escape(out, report->spent);
    }
    buf_add_text(out, "</p>\n");
    pauses(report, out);
}

static void interval_cells(const struct value *interval, const char *unit, struct buf *out)
{
    char a[32], b[32], c[32];
    double median = value_real(interval, "median", 0), low = value_real(interval, "low", 0),
           high = value_real(interval, "high", 0);
    if (*unit)
        buf_addf(out, "<td class=\"n\">%sx</td><td class=\"n\">%s to %s</td>",
                 words_ratio(median, low, high, a), words_ratio(low, low, high, b),
                 words_ratio(high, low, high, c));
    else
        buf_addf(out, "<td class=\"n\">%s</td><td class=\"n\">%s to %s</td>",
                 words_time_in(median, low, high, a), words_time_in(low, low, high, b),
                 words_time_in(high, low, high, c));
}

static void baselines(const struct report *report, struct buf *out)
{
    const struct value *all = value_get(report->evaluation, "baselines");
    char spread[32];
    if (!all || all->count == 0)
        return;
    buf_addf(out,
             "<h2>Against each baseline</h2>\n<p class=\"soft\">Measured in alternating turns with "
             "the kernel, same inputs, same cores, cold caches. A win is an interval whose lower "
             "end exceeds 1 + max(1 %%, 3 x the A/A spread); the spread here is %s.</p>\n"
             "<table><tr><th>baseline</th><th class=\"n\">its time</th><th class=\"n\">95 %%</th>"
             "<th class=\"n\">speed-up</th><th class=\"n\">95 %%</th><th></th></tr>\n",
             words_spread(value_real(report->evaluation, "spread", 0), spread));
    for (size_t i = 0; i < all->count; i++) {
        buf_add_text(out, "<tr><td>");
        escape(out, all->keys[i]);
        buf_add_text(out, "</td>");
        interval_cells(value_get(all->items[i], "ns"), "", out);
        interval_cells(value_get(all->items[i], "speedup"), "x", out);
        bool win = value_bool(all->items[i], "win", false);
        buf_addf(out, "<td><span class=\"%s\">%s</span></td></tr>\n", win ? "win" : "soft",
                 words_finding(value_text(all->items[i], "finding", ""), win,
                               value_real(value_get(all->items[i], "speedup"), "high", 0)));
    }
    buf_add_text(out, "</table>\n");
}

static void put_pairs(const struct value *object, struct buf *out)
{
    struct buf text;
    struct json json;
    buf_init(&text, 1 << 16);
    for (size_t i = 0; object && object->kind == VALUE_MAP && i < object->count; i++) {
        buf_reset(&text);
        json_init(&json, &text);
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
    interval_cells(speedup, "x", out);
    buf_add_text(out, "<td>the final measurement: fresh processes, fresh seeds</td></tr>\n");
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
                     "<td class=\"n\">%s to %s</td><td>",
                     words_time_by(c->time_ns, c->speedup, c->low, c->high, time),
                     words_ratio(c->speedup, c->low, c->high, middle),
                     words_ratio(c->low, c->low, c->high, least),
                     words_ratio(c->high, c->low, c->high, most));
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

void report_html(const struct report *report, struct buf *out)
{
    head(report, out);
    baselines(report, out);
    if (report->count > 0) {
        buf_add_text(out, "<h2>The search</h2>\n<p class=\"soft\">A dot is a kernel as the search "
                          "measured it: the "
                          "lower end of its 95 % interval over ");
        escape(out, report->against);
        buf_addf(out,
                 "; the search selects by times. The large one is the champion; red marks "
                 "are candidates that were refused.%s</p>\n",
                 report->final
                     ? " The band is the final measurement's interval, which the headline "
                       "is of. The search picks the luckiest of many, so that its dot is "
                       "apt to lie higher."
                     : "");
        report_chart(report, out);
    }
    evidence(report, out);
    if (report->source) {
        buf_add_text(out, "<h2>The kernel</h2>\n<pre>");
        escape(out, report->source);
        buf_add_text(out, "</pre>\n");
    }
    if (report->count > 0)
        candidates(report, out);
    buf_add_text(out, "</body></html>\n");
}
