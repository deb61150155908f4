/* agents/search/candidate/passages: what prompts quote from manuals, and what they say of lessons.
 *
 * The index is opened, the guides that ship put into it, and the uses of earlier runs counted, on a
 * pool thread while the workers start. A run without an index, or with one that is damaged, is a
 * run without quotations. What a prompt held is recorded before it is sent (agents/retrieve).
 */
#include "agents/search/candidate/candidate.h"

#include "agents/retrieve/rag/embed.h"

#include <stdio.h>
#include <string.h>

/* ---- the index ---- */

static void open_library(void *argument)
{
    struct passages *library = argument;
    struct err ignored;
    if (rag_open(library->folder, true, &library->rag, &library->err) != 0) {
        library->rag = NULL;
        return;
    }
    if (rag_ensure_guides(library->rag, &ignored) != 0 && ignored.code != ERR_NOT_FOUND &&
        ignored.code != ERR_BUSY)
        library->err = ignored;
    if (library->embeds)
        (void)!rag_has_vectors(library->rag, library->embeds->wire_name, &library->no_vectors);
    if (library->counts && retrieve_count_uses(library->store, library->rag, &ignored) != 0)
        library->err = ignored;
}

static const struct model *embedding_model(const struct search_options *options)
{
    const struct models *models = options->embedding_models;
    return models && models->count > 0 ? models->items : NULL;
}

void search_library_open(struct search *search)
{
    struct passages *library = search->passages;
    if (!search_writes(search) || search->options.passage_tokens <= 0)
        return;
    library->store = search->store;
    library->folder = store_folder(search->store);
    library->embeds = embedding_model(&search->options);
    /* Counts change what is found: never amid a run. */
    library->counts = !search->options.resume;
    work_start(search->task.loop, &library->work, &search->task, open_library, library);
}

bool search_library_busy(const struct search *search)
{
    return search->passages->work.active;
}

/* Once the index and the engine are there. */
void search_library_opened(struct search *search)
{
    const struct passages *library = search->passages;
    struct embedding *embedding = &search->passages->embedding;
    const char *note = search->options.embedding_note;
    if (library->err.code)
        log_event(LOG_WARN, "run.passages", search->id, "%s", library->err.message);
    embedding->completions = search->completions;
    if (library->embeds && library->rag && !library->no_vectors.code)
        embedding_use(embedding, library->embeds);
    else if (library->embeds)
        embedding_say(embedding, search->id,
                      library->rag ? library->no_vectors.message : "there is no index");
    else if (note && library->rag)
        embedding_say(embedding, search->id, note);
}

void search_library_close(struct search *search)
{
    rag_close(search->passages->rag);
    search->passages->rag = NULL;
}

/* ---- what a prompt quotes ---- */

bool search_retrieve(struct search *search, struct retrieval *retrieval, struct task *owner,
                     const char *id, const struct search_about *about)
{
    static const char *const kinds[] = {"ideas", "implement", "repair"};
    struct arena *arena = about->arena;
    struct diagnosis found =
        search_diagnose(search, arena, about->parent ? about->parent->metrics : NULL);
    if (search->options.passage_tokens <= 0)
        return false;
    struct retrieve_about asked = {.problem = search->problem,
                                   .backend = search->options.backend,
                                   .definition = search->context.reference,
                                   .limiter = found.limiter,
                                   .evidence = found.evidence};
    if (about->idea) {
        asked.title = about->idea->title;
        asked.category = about->idea->category;
        asked.why = about->idea->why;
        asked.failure = about->failure;
        asked.diagnostics = about->diagnostics;
    }
    if (about->language != NULL)
        asked.backend = language_folder(target_find(asked.backend), about->language);
    enum prompt_agent agent = !about->idea     ? PROMPT_IDEAS
                              : about->failure ? PROMPT_REPAIR
                                               : PROMPT_IMPLEMENT;
    retrieval_free(retrieval);
    *retrieval = (struct retrieval){
        .rag = search->passages->rag,
        .store = search->store,
        .writer = search->writer,
        .tokens = (size_t)search->options.passage_tokens,
        .backend = asked.backend,
        .embedding = search->passages->embedding.model.codec ? &search->passages->embedding : NULL,
        .step = agent == PROMPT_REPAIR ? about->repairs : 0,
        .first_idea = about->first_idea,
        .ideas = about->ideas};
    retrieval->key = agent == PROMPT_REPAIR
                         ? arena_printf(arena, "%s/repair-%lld", id, (long long)about->repairs)
                         : arena_printf(arena, "%s/%s", id, kinds[agent]);
    retrieve_plan(arena, agent, &asked, &retrieval->plan);
    retrieval_start(search->task.loop, retrieval, owner, id);
    return true;
}

/* ---- what every prompt says, and what this one says besides ---- */

struct prompt_context search_context_for(struct search *search, const struct retrieval *retrieval,
                                         const struct search_about *about)
{
    struct prompt_context context = search->context;
    struct diagnosis found =
        search_diagnose(search, about->arena, about->parent ? about->parent->metrics : NULL);
    context.language = about->language;
    context.passages = retrieval->passages;
    context.passage_count = retrieval->count;
    if (about->parent) { /* as it was measured beside that one */
        context.baseline = about->parent->baseline;
        context.baseline_ns = about->parent->baseline_ns;
        context.spread = about->parent->spread;
    }
    search_lessons_say(search, about, &found, &context);
    return context;
}
