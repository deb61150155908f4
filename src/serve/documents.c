/* serve/documents: each made once for all who want it, on a pool thread, one at a time; made again
 * only when the site's version is another, and not so often that making takes more than a small
 * share of the time. */
#include "base/clock.h"
#include "base/mem.h"
#include "serve/private.h"

#include <stdio.h>
#include <string.h>

static void free_document(struct document *document)
{
    list_remove(&document->link);
    blob_drop(document->blob);
    blob_drop(document->frame);
    mem_free(document);
}

/* The one that was used longest ago goes, of those that nobody waits for. */
static void make_room(struct serve *serve)
{
    size_t count = 0;
    struct document *last = NULL;
    list_each (link, &serve->documents) {
        struct document *document = container_of(link, struct document, link);
        count += !document->feed;
        if (document->users == 0 && serve->job.document != document)
            last = document;
    }
    if (count >= DOCUMENTS_MOST && last)
        free_document(last);
}

static struct document *new_document(struct serve *serve, const char *path)
{
    make_room(serve);
    struct document *document = MEM_NEW(struct document);
    snprintf(document->path, sizeof document->path, "%s", path);
    list_init(&document->waiting);
    list_init(&document->viewers);
    return document;
}

struct document *document_feed(struct serve *serve, const char *path)
{
    struct document *document = new_document(serve, path);
    document->feed = true;
    list_prepend(&serve->documents, &document->link);
    return document;
}

void document_leave(struct serve *serve, struct document *document)
{
    document->users--;
    if (document->feed && document->users == 0 && serve->job.document != document)
        free_document(document);
}

void document_told(struct serve *serve, struct document *feed)
{
    blob_drop(feed->blob);
    blob_drop(feed->frame);
    feed->blob = feed->frame = NULL;
    if (feed->left == FEED_MORE)
        documents_want(serve, feed);
}

struct document *document_of(struct serve *serve, const char *path)
{
    struct document *document = NULL;
    list_each (link, &serve->documents) {
        document = container_of(link, struct document, link);
        if (!document->feed && strcmp(document->path, path) == 0)
            break;
        document = NULL;
    }
    if (!document)
        document = new_document(serve, path);
    list_remove(&document->link);
    list_prepend(&serve->documents, &document->link); /* used now */
    return document;
}

bool document_is_fresh(const struct document *document)
{
    uint64_t pause = COST_SHARE * document->cost_ms;
    return document->looked &&
           clock_now_ms() - document->looked_ms < (pause > FRESH_MS ? pause : FRESH_MS);
}

static void make(void *argument)
{
    struct job *job = argument;
    const struct serve_site *site = job->serve->site;
    uint64_t begun = clock_now_ms(), version = site->version(site->context);
    job->made = version != job->version;
    job->version = version;
    struct document *document = job->document;
    job->made = job->made || document->left == FEED_MORE;
    int failed = -1;
    if (job->made && document->feed)
        failed = site->feed(site->context, document->path, document->note, &job->out, &job->left,
                            &job->err);
    else if (job->made)
        failed = site->document(site->context, document->path, &job->out, &job->type, &job->err);
    if (!failed)
        job->err.code = ERR_NONE;
    if (job->out.dropped > 0)
        (void)err_set(&job->err, ERR_LIMIT, "more than %d MiB", DOCUMENT_BYTES >> 20);
    job->cost_ms = clock_now_ms() - begun;
}

void documents_want(struct serve *serve, struct document *document)
{
    document->wanted = true;
    task_wake(&serve->task);
}

static void take(struct document *document, struct job *job)
{
    blob_drop(document->blob);
    blob_drop(document->frame);
    document->blob = document->frame = NULL;
    document->err = job->err;
    document->version = job->version;
    document->cost_ms = job->cost_ms;
    document->type = job->type;
    document->left = job->left;
    if (job->err.code || (document->feed && job->out.length == 0 && job->left == FEED_WAITS))
        return;
    document->blob = blob_take(&job->out);
    viewers_wake(document);
}

static void resume_waiting(struct document *document)
{
    for (struct link *link = list_pop(&document->waiting); link;
         link = list_pop(&document->waiting))
        request_resume(container_of(link, struct request, link));
}

static void finish(struct serve *serve)
{
    struct job *job = &serve->job;
    struct document *document = job->document;
    job->document = NULL;
    document->wanted = false;
    document->looked = true;
    document->looked_ms = clock_now_ms();
    if (job->made)
        take(document, job);
    buf_free(&job->out);
    resume_waiting(document);
    if (document->feed && document->users == 0) /* its viewer went meanwhile */
        free_document(document);
}

void documents_step(struct serve *serve)
{
    struct job *job = &serve->job;
    if (serve->work.done) {
        serve->work.done = false;
        finish(serve);
    }
    if (serve->work.active)
        return;
    for (struct link *link = serve->documents.head.previous; link != &serve->documents.head;
         link = link->previous) {
        struct document *document = container_of(link, struct document, link);
        if (!document->wanted)
            continue;
        *job = (struct job){.serve = serve, .document = document, .version = document->version};
        buf_init(&job->out, DOCUMENT_BYTES);
        work_start(serve->task.loop, &serve->work, &serve->task, make, job);
        return;
    }
}

void documents_tick(struct serve *serve)
{
    list_each (link, &serve->documents) {
        struct document *document = container_of(link, struct document, link);
        bool told = !document->feed || !document->blob; /* a feed goes on once it was read */
        if (!list_empty(&document->viewers) && told && !document_is_fresh(document))
            document->wanted = true;
    }
}

void serve_changed(struct serve *serve)
{
    documents_tick(serve);
    task_wake(&serve->task);
}

void documents_end(struct serve *serve)
{
    if (serve->work.done)
        finish(serve);
    list_each (link, &serve->documents)
        resume_waiting(container_of(link, struct document, link));
}

void documents_free(struct serve *serve)
{
    list_each_safe (link, &serve->documents)
        free_document(container_of(link, struct document, link));
}
