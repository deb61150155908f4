#include "cli/claim_print.h"

#include "report/words.h"

void claim_print_figures(const char *label, const struct evaluation *evaluation, FILE *out)
{
    const struct interval *ratio = &evaluation->speedup, *ns = &evaluation->time_ns;
    char time[32], median[32], low[32], high[32], caveats[160];
    const char *finding = finding_name(evaluation->finding);
    words_caveats(evaluation->unfit, evaluation->unconfined, caveats);
    fprintf(out, "  %-10s ", label);
    if (ratio->samples > 0)
        fprintf(out, "%sx %s (95%%: %s to %s), ",
                words_ratio(ratio->median, ratio->low, ratio->high, median), evaluation->baseline,
                words_ratio(ratio->low, ratio->low, ratio->high, low),
                words_ratio(ratio->high, ratio->low, ratio->high, high));
    fprintf(out, "%s%s%s%s\n", words_time_in(ns->median, ns->low, ns->high, time),
            *finding ? ": " : "", finding, caveats);
}

void claim_print(const struct claim_check *check, const struct evaluation *now, FILE *out)
{
    bool right = check->answer != CLAIM_NOT_RIGHT;
    if (right)
        claim_print_figures("here, now", now, out);
    fprintf(out, "  %-10s %lld of %lld passed%s\n", "checks", (long long)now->checks_passed,
            (long long)now->checks_total,
            now->stage_ms[STAGE_SANITIZE] > 0 ? ", sanitizers among them" : "");
    if (right && now->noise && *now->noise)
        fprintf(out, "  %-10s %s\n", "noise", now->noise);
    if (*check->differs)
        fprintf(out, "  %-10s %s\n", "differs", check->differs);
    fprintf(out, "%s: %s\n", claim_answer_name(check->answer), check->why);
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
