/* rag/survey: what is on the disk below the index's paths, and what the index knows of it. For the
 * files of this folder alone. */
#pragma once

#include "agents/retrieve/rag/plan.h"
#include "agents/retrieve/rag/read/read.h"

struct found { /* a file that belongs in the index */
    const char *path;
    const struct root_record *root;
    struct read_file file;
    bool keep; /* cannot be read now: what is known of it stays */
};

struct survey {
    struct rag *rag;
    struct plan plan;
    struct rag_change *change;
    struct root_record *roots;
    size_t root_count;
    const struct root_record *root; /* being walked */
    struct found *found;
    size_t count, capacity;
    struct buf bytes;
    struct document_record *known; /* what the index has, by path */
    size_t known_count;
};

void survey_start(struct survey *survey, struct rag *rag, struct rag_change *change);
void survey_end(struct survey *survey);

/* What the index knows, and with `roots` its paths; sets plan.anew where it must be made again. */
int survey_read_index(struct survey *survey, bool roots, struct err *err) MUST_USE;
const struct document_record *survey_known(const struct survey *survey, const char *path);

/* Leaves in survey->found each path once, then each content once, by path. */
void survey_drop_same(struct survey *survey);

bool survey_is_below(const char *path, const char *folder);
bool survey_within_roots(const struct survey *survey, const char *path);
