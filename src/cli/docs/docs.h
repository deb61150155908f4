/* cli/docs/docs: what docs.c and docs_print.c share. Main thread. */
#pragma once

#include "agents/llm/model.h"
#include "agents/retrieve/rag/documents.h"
#include "cli/options/settings.h"

void docs_print_change(const struct settings *settings, const struct rag_change *change);
void docs_print_passages(const struct settings *settings, const struct rag_passage *items,
                         size_t count, bool whole);
void docs_print_documents(const struct settings *settings, const struct rag_document *items,
                          size_t count);
void docs_print_stats(const struct settings *settings, const struct rag_stats *stats,
                      const char *embedded_by);

/* Whom --embedding-model names; texts in the arena. ERR_USAGE, ERR_ENVIRONMENT (no key). */
int docs_embedder(const struct settings *settings, struct arena *arena, struct embedder *embedder,
                  struct err *err) MUST_USE;
/* Nothing without --embedding-model. */
int docs_embed(const struct settings *settings, struct rag *rag, struct arena *arena,
               struct err *err) MUST_USE;

/* Whom a run asks for its queries' vectors: --embedding-model ("none": nobody), else the one whose
 * vectors the index has, where it can be asked at the address that the index knows. *models: one or
 * none; *note: why the one that the index names is not asked, or NULL. Errors as above. */
int docs_run_embedder(const struct settings *settings, struct arena *arena, struct models *models,
                      const char **note, struct err *err) MUST_USE;
