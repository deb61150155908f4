/* queue/clients: start-time fair queueing. A client is charged the time that its sources take of a
 * lane, at first what the mean takes, and the one with the least is next; who joins, or comes
 * again, begins with the least of those that are there. */
#include "base/mem.h"
#include "queue/private.h"

#include <stdio.h>
#include <string.h>

static struct client *find(struct queue *queue, const char *name)
{
    list_each (link, &queue->clients) {
        struct client *client = container_of(link, struct client, link);
        if (strcmp(client->name, name) == 0)
            return client;
    }
    return NULL;
}

static double least_used(const struct queue *queue)
{
    double least = -1;
    list_each (link, &queue->clients) {
        const struct client *client = container_of(link, struct client, link);
        if (least < 0 || client->used_ms < least)
            least = client->used_ms;
    }
    return least < 0 ? 0 : least;
}

size_t client_waiting(struct queue *queue, const char *name)
{
    const struct client *client = find(queue, name);
    return client ? client->waiting : 0;
}

void job_wait(struct queue *queue, const char *name, uint64_t id, const char *problem,
              const char *backend, size_t bytes)
{
    struct client *client = find(queue, name);
    if (!client) {
        client = MEM_NEW(struct client);
        snprintf(client->name, sizeof client->name, "%s", name);
        client->used_ms = least_used(queue);
        list_init(&client->jobs);
        list_append(&queue->clients, &client->link);
        queue->now.clients++;
    }
    struct job *job = MEM_NEW(struct job);
    job->id = id;
    job->client = client;
    job->problem = mem_strdup(problem);
    job->backend = backend;
    job->bytes = bytes;
    buf_init(&job->source, bytes + 1);
    list_append(&client->jobs, &job->link);
    client->waiting++;
    queue->waiting++;
    queue->bytes += bytes;
    places_for(queue, backend);
}

static struct job *first_of(const struct client *client, const char *backend, const char *problem)
{
    list_each (link, &client->jobs) {
        struct job *job = container_of(link, struct job, link);
        if (strcmp(job->backend, backend) == 0 && (!problem || strcmp(job->problem, problem) == 0))
            return job;
    }
    return NULL;
}

struct job *job_next(struct queue *queue, const char *backend, const char *problem)
{
    struct job *next = NULL;
    list_each (link, &queue->clients) {
        const struct client *client = container_of(link, struct client, link);
        if (next && client->used_ms >= next->client->used_ms)
            continue;
        struct job *job = first_of(client, backend, problem);
        if (job)
            next = job;
    }
    return next;
}

void job_begin(struct queue *queue, struct job *job)
{
    struct client *client = job->client;
    list_remove(&job->link);
    list_append(&queue->measured, &job->link);
    client->waiting--;
    client->measuring++;
    queue->waiting--;
    queue->bytes -= job->bytes;
    job->charged_ms = queue->mean_ms;
    client->used_ms += job->charged_ms;
}

void job_again(struct queue *queue, struct job *job, double took_ms)
{
    struct client *client = job->client;
    list_remove(&job->link);
    list_prepend(&client->jobs, &job->link);
    client->used_ms += took_ms - job->charged_ms;
    client->measuring--;
    client->waiting++;
    queue->waiting++;
    queue->bytes += job->bytes;
    arena_free(job->request.arena);
    arena_free(job->arena);
    job->request = (struct lane_request){.op = LANE_EVALUATE};
    job->arena = NULL;
    job->lane = NULL;
    buf_reset(&job->source);
}

void job_end(struct queue *queue, struct job *job, double took_ms)
{
    struct client *client = job->client;
    list_remove(&job->link);
    client->used_ms += took_ms - job->charged_ms;
    client->measuring--;
    job->client = NULL;
    if (client->waiting + client->measuring == 0) {
        list_remove(&client->link);
        mem_free(client);
        queue->now.clients--;
    }
}

void job_free(struct job *job)
{
    buf_free(&job->source);
    arena_free(job->request.arena);
    arena_free(job->arena);
    mem_free(job->problem);
    mem_free(job->result);
    mem_free(job);
}

void clients_free(struct queue *queue)
{
    list_each_safe (link, &queue->clients) {
        struct client *client = container_of(link, struct client, link);
        list_each_safe (inner, &client->jobs)
            job_free(container_of(inner, struct job, link));
        mem_free(client);
    }
}
