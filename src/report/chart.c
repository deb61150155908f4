/* report/chart: the run's progress as inline SVG: the lower end of each kernel's interval, which is
 * what the search selects by. Logarithmic in speed-up, since a search climbs by
 * factors; colours follow the page's, so that it reads in the dark too. */
#include "report/report.h"

#include "base/value.h"
#include "report/words.h"

#include <math.h>

enum { WIDTH = 860, HEIGHT = 260, LEFT = 62, RIGHT = 12, TOP = 12, BOTTOM = 34 };

struct scale {
    double low, high; /* log2 of the speed-up */
    size_t count;
};

static double at_x(const struct scale *scale, size_t index)
{
    double span = scale->count > 1 ? (double)(scale->count - 1) : 1;
    return LEFT + (double)(WIDTH - LEFT - RIGHT) * (double)index / span;
}

/* Over what the dots are over: a champion is set against the fastest baseline, which may be
 * another one. */
static const struct value *final_speedup(const struct report *report)
{
    const struct value *all = value_get(report->evaluation, "baselines");
    return value_get(value_get(all, report->against), "speedup");
}

static double at_y(const struct scale *scale, double speedup)
{
    double part = (log2(speedup) - scale->low) / (scale->high - scale->low);
    return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
}

static void scale_find(const struct report *report, struct scale *scale)
{
    scale->low = 0; /* 1x is always on the chart */
    scale->high = 0;
    scale->count = report->count;
    for (size_t i = 0; i < report->count; i++) {
        if (!(report->candidates[i].low > 0))
            continue;
        scale->low = fmin(scale->low, log2(report->candidates[i].low));
        scale->high = fmax(scale->high, log2(report->candidates[i].low));
    }
    if (report->final) {
        const struct value *final = final_speedup(report);
        scale->low = fmin(scale->low, log2(fmax(value_real(final, "low", 1), 0x1p-6)));
        scale->high = fmax(scale->high, log2(fmax(value_real(final, "high", 1), 0x1p-6)));
    }
    scale->low = fmax(floor(scale->low * 2) / 2, -6);
    scale->high = ceil(scale->high * 2 + 0.2) / 2;
    if (scale->high - scale->low < 1)
        scale->high = scale->low + 1;
}

static void grid(const struct scale *scale, struct buf *out)
{
    for (int whole = (int)ceil(scale->low); whole <= (int)floor(scale->high); whole++) {
        double power = whole, y = at_y(scale, exp2(power));
        buf_addf(out,
                 "<line class=\"%s\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                 "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%gx</text>\n",
                 whole == 0 ? "one" : "grid", LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4,
                 exp2(power));
    }
    buf_addf(out, "<text x=\"%d\" y=\"%d\">evaluation 1</text>", LEFT, HEIGHT - 12);
    buf_addf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%zu</text>\n", WIDTH - RIGHT,
             HEIGHT - 12, scale->count);
}

/* What the headline says, so that nobody looks for it among the dots. */
static void final_band(const struct report *report, const struct scale *scale, struct buf *out)
{
    const struct value *final = final_speedup(report);
    double median = value_real(final, "median", 0), low = value_real(final, "low", 0),
           high = value_real(final, "high", 0), floor_at = exp2(scale->low);
    if (!report->final || !(low > 0) || !(high >= low))
        return;
    char ratio[32];
    double top = at_y(scale, fmax(high, floor_at)), bottom = at_y(scale, fmax(low, floor_at));
    buf_addf(out,
             "<rect class=\"final\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>"
             "<text class=\"final\" x=\"%d\" y=\"%.1f\">final measurement %sx</text>\n",
             LEFT, top, WIDTH - LEFT - RIGHT, fmax(bottom - top, 1.0), LEFT + 6,
             top > TOP + 16 ? top - 5 : bottom + 14, words_ratio(median, low, high, ratio));
}

void report_chart(const struct report *report, struct buf *out)
{
    struct scale scale;
    double best = 0;
    scale_find(report, &scale);
    buf_addf(
        out,
        "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"speed-up of each evaluation, as the "
        "search measured it\">\n",
        WIDTH, HEIGHT);
    grid(&scale, out);
    final_band(report, &scale, out);
    for (size_t i = 0; i < report->count; i++) {
        const struct report_candidate *c = &report->candidates[i];
        if (c->low > 0)
            buf_addf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>\n",
                     c->champion ? "champion" : "kernel", at_x(&scale, i),
                     at_y(&scale, fmax(c->low, exp2(scale.low))), c->champion ? 6 : 3);
        else
            buf_addf(out, "<path class=\"failed\" d=\"M%.1f %dv-6\"/>\n", at_x(&scale, i),
                     HEIGHT - BOTTOM);
    }
    buf_addf(out, "<path class=\"best\" d=\"");
    for (size_t i = 0; i < report->count; i++) {
        double speedup = report->candidates[i].low;
        if (!(speedup > best))
            continue;
        if (best > 0)
            buf_addf(out, "H%.1fV%.1f", at_x(&scale, i), at_y(&scale, speedup));
        else
            buf_addf(out, "M%.1f %.1f", at_x(&scale, i),
                     at_y(&scale, fmax(speedup, exp2(scale.low))));
        best = speedup;
    }
    if (best > 0)
        buf_addf(out, "H%d", WIDTH - RIGHT);
    buf_addf(out, "\"/>\n</svg>\n");
}
