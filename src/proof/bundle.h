/* proof/bundle: a kernel, its problem and its evidence as one JSON document, which a stranger's
 * machine proves again (docs/archive.md has the format). What is read is hostile: its size, its
 * names and its figures are checked here; its hashes find damage, not forgery, since whoever forges
 * can hash. Any thread. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "eval/data/evaluation.h"

enum { BUNDLE_MOST = 8 << 20, BUNDLE_FILES_MOST = 64, BUNDLE_NAME_MOST = 100 };

struct bundle_file {
    const char *name; /* "baselines/naive.c": below the problem's folder */
    const char *text;
};

struct bundle {
    const char *id, *name;    /* the candidate's; its source's file name */
    const char *source;       /* UTF-8, no NUL; as everything here */
    const struct value *tune; /* a map of numbers */
    const char *problem;      /* the problem's name, for people */
    const char *entry, *size; /* which of `files` is read first; the main shape ("M=8"), or "" */
    size_t file_count;
    struct bundle_file files[BUNDLE_FILES_MOST];
    const struct value *evidence; /* a record as evaluation.h has it */
    bool final;                   /* of a champion: measured again in fresh processes */
    const char *twagent;          /* which version wrote it */
    uint64_t written_ms;
    struct evaluation claim; /* of `evidence`; filled by bundle_decode() */
};

/* A name that a bundle may hold: parts of letters, digits, "_", "-", "." that begin with no dot,
 * at most three, with '/' between. */
bool bundle_name_fits(const char *name);

int bundle_encode(const struct bundle *bundle, struct buf *out, struct err *err) MUST_USE;
/* Texts in `arena`. ERR_USAGE: it is none, its hashes are another content's, or its evidence cannot
 * be; ERR_UNSUPPORTED: a later twagent's. */
int bundle_decode(struct arena *arena, const char *text, size_t length, struct bundle *bundle,
                  struct err *err) MUST_USE;
/* The problem's files, into an empty folder that is ours alone. */
int bundle_unpack(const struct bundle *bundle, const char *folder, struct err *err) MUST_USE;
