/* cli/serve/evaluations: sources that programs post to `twagent serve` (docs/rewards.md), from
 * their JSON to the queue and back. Loop thread but for what says otherwise. */
#pragma once

#include "cli/options/settings.h"
#include "serve/serve.h"

#define EVALUATIONS_PATH "/v1/evaluations"

struct loop;
struct evaluations; /* opaque */

/* ERR_USAGE: there cannot be the lanes that the settings ask for. */
int evaluations_check(const struct settings *settings, struct err *err) MUST_USE;
/* Borrows `settings` and `folder` (the store's). Where sources cannot be kept, each post is told
 * why. Blocks. */
struct evaluations *evaluations_open(struct loop *loop, const struct settings *settings,
                                     const char *folder);
void evaluations_tell(struct evaluations *evaluations, struct serve *serve); /* of results */
void evaluations_post(struct evaluations *evaluations, struct serve_post *post);
void evaluations_stop(struct evaluations *evaluations);
void evaluations_free(struct evaluations *evaluations); /* after loop_run() */

/* As the feed of struct serve_site. "/e17" or "/e17-e40" */
bool evaluations_feeds(const char *rest);
int evaluations_feed(struct evaluations *evaluations, const char *rest, char note[SERVE_NOTE],
                     struct buf *out, enum serve_feed *left, struct err *err) MUST_USE;
/* Pool thread. "", "/e17" or "/e17-e40" */
int evaluations_put(struct evaluations *evaluations, const char *rest, struct buf *out,
                    struct err *err) MUST_USE;
uint64_t evaluations_version(struct evaluations *evaluations);
