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

/* What the calls so far have left in a subject's process. */
struct remains {
    const char *changed;   /* what is not as it was when it was loaded, by name; NULL: nothing */
    uint64_t memory_bytes; /* that it can write, besides the tensors */
    unsigned threads;      /* besides the caller's, and a runtime's that was there before */
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

/* Elements of a call. Once a thread besides the caller's has written one of the first `targets`, or
 * read it where it is an input's, that thread is stopped, and goes on where the caller waits for
 * it. Who writes one of the others before that waits until it has happened, the caller too: so what
 * looks whether a thread has begun is told that it has, on any machine, busy or idle. `late`:
 * nobody is traced before, so that nothing of it can be felt: a target is seen in the region's
 * outputs, or `at_ns` of CPU time are used, then one thread is stopped, `one` by number, or with 0
 * all. */
struct watch {
    size_t count, targets;
    struct watched {
        uint64_t offset; /* in the region's inputs or outputs */
        unsigned bytes;
        bool input;
    } items[WATCH_MOST];
    uint64_t usual_ns; /* of such a call, as far as that is known */
    bool late;
    unsigned one;
    uint64_t at_ns; /* 0: never */
    const unsigned char *outputs;
};

struct subject { /* embedded first by each kind */
    const struct subject_ops *ops;
    const char *name;
    int pid;
    bool device_clock; /* elapsed_ns is a device's own time, which the wall clock bounds */
    uint64_t
        waited_ns; /* ... of which it waited for cores, where others had those it computes on */
    struct device_state state; /* at the last call; looks 0: not known */
    bool keeps_state;          /* what a launch leaves in its own program a later one may find */
    unsigned launches;         /* of the program in the last call, where it stays */
    bool differs;              /* ... and one of them gave other results on the same bytes */
    bool wrote_around;         /* the last call wrote beside a tensor, in memory of its own */
    bool wakes_itself; /* call() lets it go, when the clock runs: not before, or it had that time */
    bool gives_back;   /* closed, it leaves its process to what is opened next, where that fits */
    bool own_results;  /* it keeps what it computes: the region's outputs stay as they were */
    bool guards; /* keeps a call's guards: who runs into one dies, ERR_CHILD, with these filled: */
    bool hit;
    uint64_t hit_offset; /* of the byte, from the input region's start */
    /* Makes it as good as a fresh one: nothing that a call left behind is there any more. False
     * where only another process can do that. NULL: no subject of this kind can. */
    bool (*renew)(struct subject *subject);
    /* Of a paused one; NULL: no code of a candidate's runs in the process of such a subject. */
    struct remains (*remains)(struct subject *subject);
    /* 0, or: in the next call, and in no other, threads besides the caller's run only while that
     * one waits, or has used this much CPU time without an answer. Where `holds` says so. */
    bool holds;
    bool unheld;    /* a call was to be, and this machine does not permit it */
    bool unwatched; /* no thread can be stopped in the middle of its work here: `watch` does nothing
                     */
    uint64_t hold_ns;
    /* ... and this is told what has run when its turn ends: 0 the caller, else one of the others,
     * in the order in which they were seen. NULL: nobody is. */
    void (*ran)(void *context, unsigned thread);
    void *ran_context;
    const struct watch *watch; /* NULL, or: in the next call, and in no other */
    unsigned threads;          /* the most that were seen besides the caller's */
};

static inline MUST_USE int subject_call(struct subject *subject, const struct call *call,
                                        uint64_t *elapsed_ns, struct err *err)
{
    return subject->ops->call(subject, call, elapsed_ns, err);
}
