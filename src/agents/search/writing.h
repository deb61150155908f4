/* agents/search/writing: a model writes a candidate: one step of WRITING. Inside src/agents/search.
 */
#ifndef AGENTS_SEARCH_WRITING_H
#define AGENTS_SEARCH_WRITING_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct attempt;
struct arm;
struct writing;

enum writing_result {
    WRITING_WAIT,
    WRITING_DONE,
    WRITING_FAILED, /* reason in the record */
    WRITING_LEFT    /* nobody can be asked now: it stays as the store has it */
};
enum writing_result writing_step(struct attempt *attempt);
/* Sends it back with what went wrong; false where no repair is left. */
bool writing_repair(struct attempt *attempt, const char *failure, const char *reason,
                    const char *details);
struct arm *writing_arm(struct attempt *attempt, const char *code, size_t length,
                        struct err *err);                    /* NULL: it cannot be read */
void writing_take(struct attempt *attempt, struct arm *arm); /* the attempt owns it now */
void writing_free(struct writing *writing);                  /* NULL is fine */

#endif
