/* What a tune has found, for people and for programs. */
#include "report/report.h"

#include "base/json.h"
#include "report/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const standings[] = {[TUNING_BEST] = "best",
                                        [TUNING_SLOWER] = "slower",
                                        [TUNING_NOT_APART] = "not apart",
                                        [TUNING_UNSTEADY] = "not steady"};

/* ---- impact ---- */

static void print_cost(const struct tuning_cost *cost, struct buf *out)
{
    buf_addf(out, "%6.2fx  %5.2f to %4.2f", cost->cost, cost->low, cost->high);
}

static void print_effect(const struct tuning_effect *effect, struct buf *out)
{
    buf_addf(out, "    %-14.14s ", effect->name);
    if (effect->levels < 2) {
        buf_add_text(out, "only one value was measured\n");
        return;
    }
    print_cost(&effect->cost, out);
    buf_addf(out, "  %8lld of %zu values\n", (long long)effect->best, effect->levels);
}

static void print_kernel(const struct tuning_kernel *kernel, struct buf *out)
{
    const struct tuning_impact *impact = &kernel->impact;
    buf_addf(out, "impact of %.40s: %zu kernels of %zu points measured", kernel->name,
             kernel->kernels, kernel->measured);
    if (kernel->dropped > 0)
        buf_addf(out, " (%zu dropped, checked at the main shape only)", kernel->dropped);
    if (kernel->space > 0)
        buf_addf(out, ", of %.0f valid", kernel->space);
    if (impact->why && impact->count == 0) {
        buf_addf(out, "\n    %s\n", impact->why);
        return;
    }
    buf_addf(out, "\n    %-14s %7s  %-13s  %8s\n", "", "cost", "95 %", "best");
    for (size_t i = 0; i < impact->count; i++)
        print_effect(&impact->effects[i], out);
    for (size_t i = 0; i < impact->pair_count; i++) {
        char both[64];
        snprintf(both, sizeof both, "%.24s x %.24s", impact->pairs[i].a, impact->pairs[i].b);
        buf_addf(out, "    %-14s ", both);
        print_cost(&impact->pairs[i].cost, out);
        buf_add_text(out, "  what they do together\n");
    }
    if (impact->why)
        buf_addf(out, "    NOT TO BE RELIED ON: %s\n", impact->why);
    buf_addf(out, "    times differ by %.*f %% from point to point", impact->differ < 0.1,
             100 * impact->differ);
    if (impact->noise > 0)
        buf_addf(out, ", one strays by %.*f %%", impact->noise < 0.1, 100 * impact->noise);
    buf_add_text(out, " (standard deviations)\n");
    buf_addf(
        out,
        "    cost: worst over best value, the other numbers as they are, on average; the model\n"
        "    behind it predicts %.0f %% of the variance of log time of points left out\n",
        100 * fmax(0, impact->explained));
}

void report_impact_words(const struct tuning_kernel *kernel, struct buf *out)
{
    enum { SHOWN = 4 };
    const struct tuning_impact *impact = &kernel->impact;
    buf_addf(out, "%.40s, %zu kernels", kernel->name, kernel->kernels);
    if (kernel->space > 0)
        buf_addf(out, " of %.0f points", kernel->space);
    if (impact->why)
        buf_addf(out, ": %s", impact->why);
    for (size_t i = 0; i < impact->count && i < SHOWN && !impact->why; i++) {
        const struct tuning_cost *cost = &impact->effects[i].cost;
        buf_addf(out, "%s %.24s %.2fx (%.2f to %.2f)", i ? "," : ":", impact->effects[i].name,
                 cost->cost, cost->low, cost->high);
    }
}

/* ---- top ---- */

static void print_top(const struct tuning *tuning, struct buf *out)
{
    buf_addf(out, "top (its time over the best's, 95 %%, where they were measured in turns)\n");
    for (size_t i = 0; i < tuning->top_count; i++) {
        const struct tuning_top *top = &tuning->top[i];
        char time[32], ratio[32], low[32], high[32];
        buf_addf(out, "  %2zu %-10s %-9s %sx (%s to %s)  ", i + 1, top->id,
                 words_time_by(top->time_ns, top->speedup, top->low, top->high, time),
                 words_ratio(top->speedup, top->low, top->high, ratio),
                 words_ratio(top->low, top->low, top->high, low),
                 words_ratio(top->high, top->low, top->high, high));
        if (top->paired)
            buf_addf(out, "%s %.3f to %.3f\n", standings[top->standing], top->ratio_low,
                     top->ratio_high);
        else
            buf_addf(out, "%s%s\n", standings[top->standing],
                     top->standing == TUNING_BEST ? "" : " by intervals");
        buf_addf(out, "     %s\n", top->source);
    }
    if (tuning->passed_over > 0)
        buf_addf(out, "  not steady: passed over, since at other sizes it is not right, slower or "
                      "too noisy\n");
    if (tuning->not_apart > 0)
        buf_addf(out, "  %zu of all kernels cannot be told from the best\n", tuning->not_apart);
}

/* ---- stability ---- */

static void print_rung(const struct tuning_rung *rung, struct buf *out)
{
    char time[32], ratio[32], low[32], high[32];
    const struct interval *speedup = &rung->speedup;
    buf_addf(out, "    %-18s ", rung->size);
    if (!rung->right) {
        buf_addf(out, "NOT RIGHT: %s\n", rung->reason);
        return;
    }
    buf_addf(out, "%-9s ",
             words_time_in(rung->time_ns.median, rung->time_ns.low, rung->time_ns.high, time));
    if (speedup->samples == 0)
        buf_add_text(out, "not compared\n");
    else
        buf_addf(out, "%sx %.24s (%s to %s) %s\n",
                 words_ratio(speedup->median, speedup->low, speedup->high, ratio), rung->baseline,
                 words_ratio(speedup->low, speedup->low, speedup->high, low),
                 words_ratio(speedup->high, speedup->low, speedup->high, high),
                 rung->finding == FINDING_NOISY ? "too noisy" : finding_name(rung->finding));
}

static void print_ladder(const struct tuning_ladder *ladder, struct buf *out)
{
    if (!ladder->kernel) {
        buf_add_text(out,
                     "stability  not measured: no kernel was verified, or the tune was stopped\n");
        return;
    }
    buf_addf(out, "stability of %s at other sizes: %s%s\n", ladder->kernel,
             ladder->stable   ? "right at each, slower at none"
             : !ladder->right ? "NOT RIGHT at every size"
                              : "right at each measured, but not shown steady",
             ladder->count < ladder->wanted ? "; some were not measured" : "");
    for (size_t i = 0; i < ladder->count; i++)
        print_rung(&ladder->rungs[i], out);
    if (!isnan(ladder->variation))
        buf_addf(out, "    coefficient of variation of the speed-ups: %.0f %%\n",
                 100 * ladder->variation);
}

void report_tuning_text(const struct tuning *tuning, struct buf *out)
{
    for (size_t i = 0; i < tuning->kernel_count; i++)
        print_kernel(&tuning->kernels[i], out);
    if (tuning->top_count > 0) {
        print_top(tuning, out);
        if (tuning->ladder.wanted > 0)
            print_ladder(&tuning->ladder, out);
    }
}

/* ---- for programs ---- */

static void put_cost(struct json *json, const struct tuning_cost *cost)
{
    json_put_real(json, "cost", cost->cost);
    json_put_real(json, "low", cost->low);
    json_put_real(json, "high", cost->high);
}

static void put_impact(struct json *json, const struct tuning_impact *impact)
{
    json_object(json);
    json_put_text(json, "why", impact->why);
    json_put_int(json, "points", (int64_t)impact->points);
    json_put_real(json, "explained", impact->explained);
    json_put_real(json, "differ", impact->differ);
    json_put_real(json, "noise", impact->noise);
    json_put_array(json, "parameters");
    for (size_t i = 0; i < impact->count; i++) {
        const struct tuning_effect *effect = &impact->effects[i];
        json_object(json);
        json_put_text(json, "name", effect->name);
        put_cost(json, &effect->cost);
        json_put_int(json, "values", (int64_t)effect->levels);
        json_put_int(json, "best", effect->best);
        json_object_end(json);
    }
    json_array_end(json);
    json_put_array(json, "pairs");
    for (size_t i = 0; i < impact->pair_count; i++) {
        json_object(json);
        json_put_text(json, "a", impact->pairs[i].a);
        json_put_text(json, "b", impact->pairs[i].b);
        put_cost(json, &impact->pairs[i].cost);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void put_points(struct json *json, const struct tuning_kernel *kernel)
{
    json_put_array(json, "points");
    for (size_t i = 0; i < kernel->measured; i++) {
        const struct tuning_point *point = &kernel->points[i];
        json_object(json);
        json_put_text(json, "id", point->id);
        json_put_text(json, "verdict", point->verdict);
        json_put_raw(json, "tune", point->tune);
        json_put_real(json, "time_ns", point->time_ns);
        json_object_end(json);
    }
    json_array_end(json);
}

static void put_interval(struct json *json, const char *key, const struct interval *interval)
{
    json_key(json, key);
    evaluation_put_interval(json, interval);
}

static void put_top(struct json *json, const struct tuning_top *top)
{
    json_object(json);
    json_put_text(json, "id", top->id);
    json_put_text(json, "source", top->source);
    json_put_real(json, "time_ns", top->time_ns);
    json_put_real(json, "speedup", top->speedup);
    json_put_real(json, "low", top->low);
    json_put_real(json, "high", top->high);
    json_put_text(json, "standing", standings[top->standing]);
    json_put_bool(json, "paired", top->paired);
    if (top->paired) {
        json_put_real(json, "time_over_best", top->ratio);
        json_put_real(json, "time_over_best_low", top->ratio_low);
        json_put_real(json, "time_over_best_high", top->ratio_high);
    }
    json_object_end(json);
}

static void put_ladder(struct json *json, const struct tuning_ladder *ladder)
{
    json_object(json);
    json_put_text(json, "kernel", ladder->kernel);
    json_put_int(json, "wanted", (int64_t)ladder->wanted);
    json_put_bool(json, "right", ladder->right);
    json_put_bool(json, "stable", ladder->stable);
    json_key(json, "variation");
    if (isnan(ladder->variation))
        json_null(json);
    else
        json_real(json, ladder->variation);
    json_put_array(json, "sizes");
    for (size_t i = 0; ladder->kernel && i < ladder->count; i++) {
        const struct tuning_rung *rung = &ladder->rungs[i];
        json_object(json);
        json_put_text(json, "size", rung->size);
        json_put_bool(json, "main", rung->main);
        json_put_bool(json, "right", rung->right);
        json_put_text(json, "reason", rung->reason);
        json_put_text(json, "baseline", rung->baseline);
        json_put_text(json, "finding", finding_name(rung->finding));
        json_put_text(json, "noise", rung->noise);
        put_interval(json, "time_ns", &rung->time_ns);
        put_interval(json, "speedup", &rung->speedup);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

void report_tuning_json(const struct tuning *tuning, struct json *json)
{
    json_object(json);
    json_put_text(json, "run", tuning->run);
    json_put_text(json, "strategy", tuning->strategy);
    json_put_array(json, "kernels");
    for (size_t i = 0; i < tuning->kernel_count; i++) {
        const struct tuning_kernel *kernel = &tuning->kernels[i];
        json_object(json);
        json_put_text(json, "name", kernel->name);
        json_put_int(json, "measured", (int64_t)kernel->measured);
        json_put_int(json, "kernels", (int64_t)kernel->kernels);
        json_put_int(json, "dropped", (int64_t)kernel->dropped);
        json_put_real(json, "valid", kernel->space);
        json_key(json, "impact");
        put_impact(json, &kernel->impact);
        put_points(json, kernel);
        json_object_end(json);
    }
    json_array_end(json);
    json_put_array(json, "top");
    for (size_t i = 0; i < tuning->top_count; i++)
        put_top(json, &tuning->top[i]);
    json_array_end(json);
    json_put_int(json, "not_apart", (int64_t)tuning->not_apart);
    json_put_int(json, "passed_over", (int64_t)tuning->passed_over);
    json_key(json, "stability");
    if (tuning->ladder.wanted > 0)
        put_ladder(json, &tuning->ladder);
    else
        json_null(json);
    json_object_end(json);
}
