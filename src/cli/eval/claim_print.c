#include "cli/eval/claim_print.h"

#include "base/buf.h"
#include "cli/print/print.h"
#include "report/words.h"

#include <stdio.h>

enum { LINES_MOST = 1 << 16 };

static void put_figures(const char *label, const struct evaluation *evaluation, struct buf *out)
{
    const struct interval *ratio = &evaluation->speedup, *ns = &evaluation->time_ns;
    char time[32], median[32], low[32], high[32], caveats[160];
    const char *finding = finding_name(evaluation->finding);
    words_caveats(evaluation->unfit, evaluation->unconfined, caveats);
    buf_addf(out, "  %-10s ", label);
    if (ratio->samples > 0)
        buf_addf(out, "%sx %s (95 %%: %s to %s), ",
                 words_ratio(ratio->median, ratio->low, ratio->high, median), evaluation->baseline,
                 words_ratio(ratio->low, ratio->low, ratio->high, low),
                 words_ratio(ratio->high, ratio->low, ratio->high, high));
    buf_addf(out, "%s%s%s%s\n", words_time_in(ns->median, ns->low, ns->high, time),
             *finding ? ": " : "", finding, caveats);
}

void claim_print_figures(const char *label, const struct evaluation *evaluation)
{
    BUF_LOCAL(text, LINES_MOST);
    put_figures(label, evaluation, &text);
    print_lines(buf_text(&text), false);
}

static void print(const struct claim_check *check, const struct evaluation *now)
{
    bool right = check->answer != CLAIM_NOT_RIGHT;
    BUF_LOCAL(text, LINES_MOST);
    if (right)
        put_figures("here, now", now, &text);
    if (now->checks_total > 0)
        buf_addf(&text, "  %-10s %lld of %lld passed%s\n", "checks", (long long)now->checks_passed,
                 (long long)now->checks_total,
                 now->stage_ms[STAGE_SANITIZE] > 0 ? ", sanitizers among them" : "");
    if (right && now->noise && *now->noise)
        buf_addf(&text, "  %-10s %s\n", "noise", now->noise);
    if (*check->differs)
        buf_addf(&text, "  %-10s %s\n", "differs", check->differs);
    buf_addf(&text, "%s: %s\n", claim_answer_name(check->answer), check->why);
    print_lines(buf_text(&text), false);
}

enum claim_answer claim_tell(struct arena *arena, const struct claimed *claimed,
                             const struct evaluation *now, bool as_json)
{
    const struct claim_check check = claim_compare(arena, claimed->then, now);
    if (!as_json) {
        print(&check, now);
        return check.answer;
    }
    JSON_LOCAL(json, text, 64 << 20);
    json_object(&json);
    json_put_text(&json, "problem", claimed->problem);
    json_put_text(&json, "kernel", claimed->kernel);
    if (claimed->origin)
        json_put_text(&json, "origin", claimed->origin);
    claim_put(&check, claimed->then, now, &json);
    json_key(&json, "evaluation");
    evaluation_to_json(now, &json);
    json_object_end(&json);
    printf("%s\n", buf_text(&text));
    return check.answer;
}

struct settings claim_settings(const struct settings *settings, const struct evaluation *then)
{
    struct settings chosen = *settings;
    chosen.effort = "full";
    chosen.profile = chosen.sanitize = chosen.cachegrind = false;
    chosen.sweep = -1;
    if (*then->baseline)
        chosen.search.baseline = then->baseline;
    return chosen;
}
