/* What the fuzzers of YAML and of JSON share. */
#pragma once

#include "fuzz.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/value.h"

/* A message is one line and names the document, which was given as "doc". */
void require_document_message(const struct err *err);

/* The tree as JSON can be read, and written again gives the same bytes. */
void require_json_round_trip(struct arena *arena, const struct value *root);

/* Every node is whole: counts, texts, unique keys, and lines from 1 where `lines` is true. */
void require_whole(const struct value *value, bool lines, int depth);
