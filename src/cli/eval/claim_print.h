/* cli/eval/claim_print: a figure of then beside one of now, as verify and rerun tell it. Main
 * thread. */
#pragma once

#include "cli/options/settings.h"
#include "proof/claim.h"

/* On standard output, as wide as the terminal is. One line: "  claimed    1.97x naive (95 %: 1.93
 * to 2.01), 123 us: faster". */
void claim_print_figures(const char *label, const struct evaluation *evaluation);
struct claimed {
    const char *problem, *kernel, *origin; /* origin: or NULL */
    const struct evaluation *then;
};
/* The answer, the figures of now, what was checked, what differs: three to five lines, or an object
 * of JSON. */
enum claim_answer claim_tell(struct arena *arena, const struct claimed *claimed,
                             const struct evaluation *now, bool as_json);

/* What eval is told for either: all that decides, nothing for the record alone, and the baseline
 * that the figure is against. */
struct settings claim_settings(const struct settings *settings, const struct evaluation *then);
