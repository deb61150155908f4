/* agents/lessons/lesson: what a finished evaluation of a new idea taught: where it was tried, what
 * it changed by how much, or why it failed. In STORE_LESSONS under "FAMILY/BACKEND/ID", so that
 * those of one family lie together; ID is the candidate's, or of one that was imported "x" and a
 * hash of what it says. A lesson is written with its candidate's last move and never changed. Any
 * thread; texts of one that was read are in its arena. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct lesson_place { /* where something was measured; "" or 0 where not known */
    const char *family, *problem, *backend;
    const char *problem_hash;  /* of its definition (eval/problem/identity); "": not known */
    const char *language;      /* "triton", of backends with several; "": no choice, or not known */
    const char *shape;         /* "M=512 N=512 K=512" */
    const char *dtype;         /* of the inputs: "float32", "float32,int64" */
    const char *device;        /* "AMD EPYC 9R14" */
    const char *device_family; /* "znver4", "sm_90" */
    int64_t cores;
};

struct lesson {
    const char *id;
    struct lesson_place place;
    const char *title, *category;
    const char *name, *source; /* of the source: "packed.c", and the hash of its text */
    const char *tune;          /* JSON object of numbers */
    const char *limiter_before, *limiter_after; /* agents/diagnosis' words; "" not known */
    const char *verdict, *reason;               /* "kernel" | "rejected" | "failed"; why */
    const char *baseline;
    double change, change_low, change_high;    /* time of the parent over its own; 0: no parent */
    double speedup, speedup_low, speedup_high; /* over the baseline */
    double time_ns;
    bool point; /* a point of a tune space: numbers, no mechanism */
    int64_t ended_ms;
};

/* One JSON object on one line. */
void lesson_encode(const struct lesson *lesson, struct buf *out);

/* ERR_USAGE, one line, where it is not a lesson or says what cannot be. Texts are somebody else's:
 * they come out cut to a length, on one line, without control characters and back-quotes. */
int lesson_decode(struct arena *arena, const char *text, size_t length, struct lesson *lesson,
                  struct err *err) MUST_USE;

const char *lesson_key(struct arena *arena, const struct lesson *lesson);
/* "FAMILY/BACKEND/"; without a backend "FAMILY/". */
const char *lesson_prefix(struct arena *arena, const char *family, const char *backend);

/* Of one definition: the same name, and the same hash where either has one. */
bool lesson_same_problem(const struct lesson_place *one, const struct lesson_place *other);

/* Hash of all that it says but for its id: the same lesson under two ids. */
void lesson_content(const struct lesson *lesson, char text[33]);

/* Faster than its parent beyond doubt: the lower end of the interval is above 1. */
bool lesson_is_win(const struct lesson *lesson);

typedef bool lesson_visit(void *context, const struct lesson *lesson); /* false: no more */
/* Those whose key begins with `prefix` ("": all), in the order of keys. Each is gone with the call.
 */
int lesson_scan(struct store *store, const char *prefix, lesson_visit *visit, void *context,
                struct err *err) MUST_USE;
