/* eval/cuda/sanitize/sanitizer: NVIDIA's compute-sanitizer over a candidate's plan: memcheck,
 * racecheck, initcheck and synccheck, each around a runner of its own in which every tensor is an
 * allocation of exactly its size and what nobody has written is not written by us either. Started
 * by sanitizer_warm() or with the first calls for an artifact, ended behind the last one. Measuring
 * thread, or another one while that one asks for nothing here. */
#pragma once

#include "eval/backend/backend.h"

enum sanitizer_tool { TOOL_MEMCHECK, TOOL_RACECHECK, TOOL_INITCHECK, TOOL_SYNCCHECK, TOOLS };
extern const char *const sanitizer_tools[TOOLS]; /* "memcheck", ... */

/* $TWAGENT_COMPUTE_SANITIZER (a file, or "" for none), PATH, $CUDA_HOME/bin, /usr/local/cuda*;
 * NULL: none. */
const char *sanitizer_find(struct arena *arena);

/* Begins to start the tools for the next candidate, where they do not run: the slowest alone, or
 * all of them; waits for nothing. */
void sanitizer_warm(const struct lane_facts *lane, const struct region *region, bool all);
void sanitizer_settle(void); /* waits until none is still starting: before something is timed */

/* eval/backend/backend.h's hold_sanitizer. */
void sanitizer_hold(enum sanitizer_hold hold);

/* eval/backend/backend.h's sanitize. */
int cuda_sanitize(const struct lane_facts *lane, const struct region *region, const char *artifact,
                  const struct program *program, const struct call *calls, size_t count,
                  bool together, struct buf *report, struct err *err) MUST_USE;

/* ---- what it says (report.c); pure ---- */

struct sanitizer_words {
    bool ended;           /* its last line is there */
    bool broken;          /* it says that it could not do its work, or complains of no kernel */
    int errors, warnings; /* findings; until it has ended those that stand in the text */
    uint64_t address;     /* of device memory, that the first one tells of; 0: of none */
    char complaint[120];  /* the first that names no place in a kernel; "": there is none */
};

/* What the tool's own lines have in front, where it is not told otherwise. */
#define SANITIZER_MARK "========="

/* Reads all that a tool has written so far; adds findings to `report`, each as one line of at most
 * some 300 bytes, at most `most` of them: "racecheck: Race reported between ... candidate.cu:12".
 * `mark`: one that a candidate's own printf cannot know; what stands before it in a line, and lines
 * without it, are the candidate's. */
void sanitizer_read(enum sanitizer_tool tool, const char *mark, const char *text, size_t length,
                    size_t most, struct sanitizer_words *words, struct buf *report);

/* Lines without the mark go; the last one stays as far as it may still get one. */
void sanitizer_keep_marked(const char *mark, struct buf *said);
