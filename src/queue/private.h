/* queue/private: what the files of src/queue know of each other; nobody else includes it. */
#pragma once

#include "loop/loop.h"
#include "loop/task.h"
#include "loop/work.h"
#include "queue/queue.h"
#include "store/store.h"

#include <pthread.h>

enum { LANES_OPEN = 4, DEPTH = 2, TURN_MS = 10000, WHY_MOST = 256, NAME_MOST = 96 };

struct client { /* one that has something waiting or measured */
    struct link link;
    char name[QUEUE_CLIENT_NAME];
    struct list jobs; /* that wait */
    size_t waiting, measuring;
    double used_ms; /* of lanes; who joins begins with the least of the others' */
};

struct job { /* one source, from its acceptance until its result is on the disk */
    struct link link;
    uint64_t id;
    struct client *client;
    char *problem;
    const char *backend;
    size_t bytes;
    unsigned deaths; /* of workers that had it: a part of one where it only waited there */
    unsigned opens;  /* that failed where it was the next */
    double charged_ms;
    uint64_t began_ms;
    struct arena *arena; /* once it is measured */
    struct buf source;
    struct lane_request request;
    struct place_lane *lane;
    char *result; /* JSON */
};

struct place_lane { /* a worker with one problem open */
    struct lane *lane;
    char *problem;
    struct lane_request open;
    bool closing;
    unsigned measuring;
    uint64_t used_ms;
};

struct place { /* one lane: a worker for each of the last problems, one of them at work */
    const char *backend;
    struct lane_share share;
    struct place_lane lanes[LANES_OPEN], *now;
    uint64_t turn_ms, ended_ms, first_ms;
    unsigned failures;       /* to open a problem, one after the other */
    uint64_t rests_to_ms;    /* after one */
    char why[WHY_MOST];      /* the last; "": none */
    char machine[NAME_MOST]; /* its CPU or GPU, of the last worker that opened; "": not known */
    double gone_busy_ms;     /* of workers that were closed */
};

struct facts {
    uint64_t accepted, refused, done, waiting, again;
    uint64_t changes; /* of what is measured and where lanes stand */
    size_t clients, measuring_count, place_count;
    uint64_t measuring[QUEUE_PLACES * DEPTH];
    struct {
        const char *backend, *device, *state;
        char host[64], machine[NAME_MOST], why[WHY_MOST];
        double busy_ms, since_ms;
    } places[QUEUE_PLACES];
};

struct queue {
    struct task task;
    const struct queue_options *options;
    struct store *store;
    struct timer timer;
    struct list clients;  /* of struct client */
    struct list measured; /* of struct job: on a lane */
    struct place places[QUEUE_PLACES];
    size_t place_count;
    uint64_t next_id;
    size_t waiting, bytes;
    double mean_ms;
    struct list arrived, admitted, finished; /* for the next cycle */
    struct work work;
    struct cycle { /* on the pool: one at a time */
        struct queue *queue;
        struct list parsing, accepting, keeping;
        int failed;
        struct err err;
    } cycle;
    struct err last; /* of a cycle that could not write; told once */
    struct facts now;
    pthread_mutex_t lock; /* of `told` */
    struct facts told;
};

/* ---- records.c ---- */
void record_accept(struct store_batch *batch, const struct queue_asked *asked);
void record_keep(struct store_batch *batch, const struct job *job);
/* Each that was accepted and has no result becomes a job that waits. */
int records_restore(struct queue *queue, struct err *err) MUST_USE;
/* Fills the job's request from the store. */
int record_read(struct queue *queue, struct job *job, struct err *err) MUST_USE;
void record_result(struct queue *queue, struct job *job, const struct err *err);

/* ---- clients.c: whose turn it is ---- */
void job_wait(struct queue *queue, const char *client, uint64_t id, const char *problem,
              const char *backend, size_t bytes);
/* The next one for a lane of `backend`, which still waits; with `problem` only one of that. */
struct job *job_next(struct queue *queue, const char *backend, const char *problem);
void job_begin(struct queue *queue, struct job *job);                 /* no longer waits */
void job_again(struct queue *queue, struct job *job, double took_ms); /* its client's next one */
void job_end(struct queue *queue, struct job *job, double took_ms);
void job_free(struct job *job);
size_t client_waiting(struct queue *queue, const char *name);
void clients_free(struct queue *queue);

/* ---- places.c ---- */
void places_for(struct queue *queue, const char *backend); /* made where they are not there yet */
void places_step(struct queue *queue);
bool places_close(struct queue *queue); /* true: all are closed */
double place_busy_ms(const struct place *place);
const char *place_state(const struct place *place);
const char *place_host(const struct place *place);
