/* eval/backend/subject: something that computes outputs when told to: a runner that holds a
 * candidate or a C baseline, or the Python reference as a baseline. Blocking; worker's measuring
 * thread. While one is timed every other subject is paused. The clock is read here, in the worker:
 * just before the word is given and just after the answer comes; nothing that a subject says is
 * evidence, but for the time that a GPU's runner reads off its device: no code of a candidate's
 * runs in it. */
#pragma once

#include "eval/candidate/layout.h"

struct subject;

/* How a device was doing beside the timed calls: least and most of what was read. */
struct device_state {
    unsigned looks, sm_mhz[2], memory_mhz[2], celsius[2];
    unsigned other_looks, others[2]; /* processes that compute there and are not our worker's */
    uint64_t limits;                 /* NVML's reasons for lower clocks, all that were seen */
    double span_ns, wall_ns;         /* the same stretch by the device's events and by the clock */
};

struct subject_ops {
    /* ERR_CHILD: died (message "killed by SIGSEGV"); ERR_TIMEOUT; ERR_PROTOCOL. */
    int (*call)(struct subject *subject, const struct call *call, uint64_t *elapsed_ns,
                struct err *err);
    void (*pause)(struct subject *subject);  /* SIGSTOP to the whole group, confirmed */
    void (*resume)(struct subject *subject); /* SIGCONT */
    void (*close)(struct subject *subject);  /* kills, reaps, frees */
};

enum { WATCH_MOST = 4 };

/* Output elements of a call, by their place in the region: once threads besides the caller's have
 * written `after` of them, they are stopped. They go on where the caller waits for them. */
struct watch {
    size_t count;
    struct watched {
        uint64_t offset;
        unsigned bytes;
    } items[WATCH_MOST];
    unsigned after;
    uint64_t usual_ns; /* of such a call, as far as that is known */
};

struct subject { /* embedded first by each kind */
    const struct subject_ops *ops;
    const char *name;
    int pid;
    bool device_clock;         /* elapsed_ns is a device's own time, which the wall clock bounds */
    struct device_state state; /* at the last call; looks 0: not known */
    bool keeps_state;          /* what a launch leaves in its own program a later one may find */
    bool wakes_itself; /* call() lets it go, when the clock runs: not before, or it had that time */
    bool own_results;  /* it keeps what it computes: the region's outputs stay as they were */
    bool guards; /* keeps a call's guards: who runs into one dies, ERR_CHILD, with these filled: */
    bool hit;
    uint64_t hit_offset; /* of the byte, from the input region's start */
    /* Makes it as good as a fresh one: nothing that a call left behind is there any more. False
     * where only another process can do that. NULL: no subject of this kind can. */
    bool (*renew)(struct subject *subject);
    /* 0, or: in the next call, and in no other, threads besides the caller's run only while that
     * one waits, or has used this much CPU time without an answer. Where `holds` says so. */
    bool holds;
    bool unheld; /* a call was to be, and this machine does not permit it */
    uint64_t hold_ns;
    void (*waits)(void *context); /* ... and this is told when it first does; NULL: nobody is */
    void *waits_context;
    const struct watch *watch; /* NULL, or: in the next call, and in no other */
    unsigned threads;          /* the most that were seen besides the caller's */
};

static inline MUST_USE int subject_call(struct subject *subject, const struct call *call,
                                        uint64_t *elapsed_ns, struct err *err)
{
    return subject->ops->call(subject, call, elapsed_ns, err);
}
