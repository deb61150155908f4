/* A run as OpenMetrics 1.0 has it, for whoever keeps such numbers over time. */
#include "cli/status/facts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct metrics {
    struct buf *out;
    const char *labels; /* of every sample: run="r3",problem="matmul" */
};

/* What a label's value may not hold as it is: and what is no text at all. */
static const char *escaped(struct buf *text, const char *value)
{
    buf_reset(text);
    for (const char *at = value; *at; at++) {
        if (*at == '\\' || *at == '"')
            buf_add_char(text, '\\');
        buf_add_char(text, (unsigned char)*at < ' ' || *at == 0x7f ? ' ' : *at);
    }
    return buf_text(text);
}

static void family(struct metrics *metrics, const char *name, const char *type, const char *unit,
                   const char *help)
{
    buf_addf(metrics->out, "# TYPE twagent_%s %s\n", name, type);
    if (unit)
        buf_addf(metrics->out, "# UNIT twagent_%s %s\n", name, unit);
    buf_addf(metrics->out, "# HELP twagent_%s %s\n", name, help);
}

static void sample(struct metrics *metrics, const char *name, const char *more, double number)
{
    if (isfinite(number)) /* what is not known is left out, and is not 0 */
        buf_addf(metrics->out, "twagent_%s{%s%s%s} %.17g\n", name, metrics->labels,
                 *more ? "," : "", more, number);
}

static void gauge(struct metrics *metrics, const char *name, const char *unit, const char *help,
                  double number)
{
    family(metrics, name, "gauge", unit, help);
    sample(metrics, name, "", number);
}

static void counter(struct metrics *metrics, const char *name, const char *unit, const char *help,
                    double number)
{
    char total[64];
    family(metrics, name, "counter", unit, help);
    snprintf(total, sizeof total, "%s_total", name);
    sample(metrics, total, "", number);
}

static void put_candidates(struct metrics *metrics, const struct run_record *run)
{
    family(metrics, "candidates", "counter", NULL, "Candidates that were evaluated, by outcome.");
    sample(metrics, "candidates_total", "outcome=\"kept\"", (double)run->kept);
    sample(metrics, "candidates_total", "outcome=\"rejected\"", (double)run->rejected);
    sample(metrics, "candidates_total", "outcome=\"failed\"", (double)run->failed);
    sample(metrics, "candidates_total", "outcome=\"dropped\"", (double)run->dropped);
    sample(metrics, "candidates_total", "outcome=\"outside\"", (double)run->outside);
}

static void put_requests(struct metrics *metrics, const struct value *asked)
{
    static const char *const outcomes[] = {"answered", "failed", "moved", "cached"};
    BUF_LOCAL(name, 4096);
    BUF_LOCAL(labels, 8192);
    family(metrics, "requests", "counter", NULL, "Requests to models, by what became of them.");
    for (size_t i = 0; asked && i < asked->count; i++) {
        const struct value *model = asked->items[i];
        for (size_t k = 0; k < sizeof outcomes / sizeof outcomes[0]; k++) {
            buf_reset(&labels);
            buf_addf(&labels, "model=\"%s\",outcome=\"%s\"",
                     escaped(&name, value_text(model, "name", "")), outcomes[k]);
            sample(metrics, "requests_total", buf_text(&labels),
                   (double)value_int(model, outcomes[k], 0));
        }
    }
}

static void put_best(struct metrics *metrics, const struct run_record *run)
{
    bool known = *run->best && run->time_ns > 0;
    gauge(metrics, "best_seconds", "seconds", "Time of the best kernel.",
          known ? run->time_ns / 1e9 : (double)NAN);
    gauge(metrics, "speedup_ratio", "ratio", "Its speed-up over the baseline.",
          known ? run->speedup : (double)NAN);
    gauge(metrics, "speedup_low_ratio", "ratio", "Lower end of the speed-up's 95 % interval.",
          known ? run->speedup_low : (double)NAN);
    gauge(metrics, "speedup_high_ratio", "ratio", "Upper end of the speed-up's 95 % interval.",
          known ? run->speedup_high : (double)NAN);
    gauge(metrics, "verified", NULL, "1 where the best kernel passed the final measurement.",
          run->verified);
}

void run_status_metrics(const struct run_status *status, struct buf *out)
{
    const struct run_record *run = &status->run;
    BUF_LOCAL(text, 4096);
    BUF_LOCAL(labels, 8192);
    buf_addf(&labels, "run=\"%s\"", escaped(&text, run->id));
    buf_addf(&labels, ",problem=\"%s\"", escaped(&text, run->problem));
    struct metrics metrics = {out, buf_text(&labels)};
    family(&metrics, "run", "info", NULL, "The run that goes on now, or the last one.");
    buf_addf(out, "twagent_run_info{%s,state=\"%s\"", metrics.labels, status->state);
    buf_addf(out, ",backend=\"%s\"} 1\n", escaped(&text, run->backend));
    gauge(&metrics, "live", NULL, "1 while the run's process goes on.", status->live);
    gauge(&metrics, "paused", NULL, "1 while it waits.", status->live && *run->paused != '\0');
    gauge(&metrics, "round", NULL, "The round that it is in.", (double)run->round);
    gauge(&metrics, "elapsed_seconds", "seconds", "Its time so far.",
          (run->elapsed_ms + status->since_ms) / 1e3);
    put_candidates(&metrics, run);
    gauge(&metrics, "in_flight", NULL, "Candidates on the way.",
          status->live ? (double)run->in_flight : 0);
    put_best(&metrics, run);
    counter(&metrics, "spent_dollars", "dollars", "What answers cost, where prices are known.",
            (double)status->spending.micro_dollars / 1e6);
    counter(&metrics, "tokens", NULL, "Tokens of prompts and answers.",
            (double)status->spending.tokens);
    put_requests(&metrics, status->asked);
    gauge(&metrics, "lane_busy_ratio", "ratio", "Share of time that lanes evaluated.",
          run->lane_busy);
    gauge(&metrics, "lane_waits_ratio", "ratio",
          "Share of time that lanes waited for another twagent's turn.", run->lane_waits);
    buf_add_text(out, "# EOF\n");
}
