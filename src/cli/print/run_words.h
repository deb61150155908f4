/* cli/print/run_words: what a run's record and its ledger say, in words; for the summary, show,
 * status and the report. Main thread. Texts in `arena`. */
#pragma once

#include "agents/record/record.h"
#include "store/store.h"

struct spending {     /* settled and charged, not what is reserved */
    int64_t requests; /* reservations ever made: what was sent */
    int64_t answers, tokens, micro_dollars;
    int64_t lost, lost_tokens, lost_micro_dollars;   /* of these, whose outcome is not known */
    int64_t reserved_tokens, reserved_micro_dollars; /* on their way now */
    int64_t doubted, doubt_micro_dollars; /* answers that said no usage; what they may cost more */
    int64_t doubt_tokens;
    int64_t cached_tokens, saved_micro_dollars; /* of prompts, by the providers' caches */
    bool unpriced;                              /* of some model */
};

/* Reads the run's ledger. One that cannot be read is an empty one: words are no verdict. */
struct spending run_spending(struct store *store, struct arena *arena, const char *run);

/* "gpt-5-mini 67 %, claude-sonnet-4-5 33 %", or "ideas: ...; code: ..."; NULL: nobody is asked. */
const char *run_words_models(struct arena *arena, const struct run_record *run);
/* "$1.23 of $5.00, 1.20 M of 5 M tokens, 312 answers"; NULL: nothing was asked. */
const char *run_words_spent(struct arena *arena, const struct run_record *run,
                            const struct spending *spending);
/* "1.97x reference (95 %: 1.95 to 1.98)" */
const char *run_words_speedup(struct arena *arena, double speedup, double low, double high,
                              const char *baseline);
/* "1.380x naive (95 %: 1.310 to 1.450), verified: faster"; of a machine that was too busy: "no
 * champion: too noisy to say whether r3-c7 is faster than naive"; "no kernel was found" */
const char *run_words_outcome(struct arena *arena, const struct run_record *run);
/* What became of the requests to each model: "a: 12 asked, 10 answered, 2 failed, 0 known, $0.10",
 * and a line for each reason why it failed or was waited for. Returns how many lines. */
size_t run_words_asked(struct arena *arena, const struct run_record *run, const char ***lines);
/* "3 answers awaited: /home/me/box (...)"; "all rounds done"; "budget"; ... */
const char *run_words_end(struct arena *arena, const struct run_record *run);
/* "twagent resume r3", with twice the budget that ended it: "... --budget-time 20m"; NULL where it
 * came to its end by itself. */
const char *run_words_resume(struct arena *arena, const struct run_record *run);
/* "MR=8,NR=2", as --tune takes it, or with something else between; "" */
const char *run_words_tune(struct arena *arena, const struct candidate_record *candidate,
                           const char *between);
/* "packed.c MR=8 NR=2" */
const char *run_words_source(struct arena *arena, const struct candidate_record *candidate);
/* True where something was cut short: by a budget, a person, a mailbox, a failure, a death. */
bool run_can_go_on(const struct run_record *run);
/* What pauses it now is a person, who has to say when it goes on; else it looks again by itself. */
bool run_paused_by_person(const struct run_record *run);
