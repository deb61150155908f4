/* agents/search/run/watch: once a second, while a run goes on: why it waits, whether there is room
 * on the disk, whether only mailboxes could bring it on. Each pause has a reason, a beginning and
 * an end. Inside src/agents/search. */
#pragma once

#include "base/buf.h"
#include "loop/loop.h"
#include "loop/work.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct search;

enum { PAUSES_MAX = 100 };

struct pause {
    uint64_t since_ms, until_ms; /* wall; until 0: it lasts */
    char reason[256];
};

struct watch {
    struct timer tick, mailbox;
    struct work space_work;
    struct buf space_why;
    bool space_short, held, paused_by_person, mailbox_waits;
    uint64_t space_looked_ns, put_ns, tidied_ns;
    int64_t mailbox_answers;
    char provider[256]; /* why nobody answers for now, or "" */
    struct pause pauses[PAUSES_MAX];
    size_t pause_count;
};

void search_watch_open(struct search *search);
/* At each step of the run; true: its record is to be written now, for whoever reads it. */
bool search_watch(struct search *search);
/* The same while it begins or ends, of a full disk alone: it is looked at each second, and said. */
void search_watch_room(struct search *search);
void search_watch_end(struct search *search);
bool search_watch_busy(const struct search *search);
void search_watch_free(struct search *search);
/* That nobody answers for now, and why; "": somebody does again. */
void search_watch_provider(struct search *search, const char *why);
void search_watch_person(struct search *search, bool paused); /* asks for it */
void search_recall_pauses(struct search *search);             /* of earlier processes */
char *search_pauses_text(const struct search *search);        /* JSON; mem_free() it */
const char *search_paused(const struct search *search);       /* NULL: it goes on */
