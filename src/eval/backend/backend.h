/* eval/backend: what a backend gives the worker; one const table each (src/cli/options/backends.c).
 * A build is two steps: the compiler runs on the worker's loop, the rest on its measuring thread.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/value.h"
#include "eval/backend/lane_facts.h"
#include "eval/backend/subject.h"
#include "eval/problem/target.h"
#include "loop/process.h"

/* portable: without this machine's newest instructions, to count with; main: fast, one shape's */
enum build_flavour { BUILD_FAST, BUILD_SANITIZED, BUILD_REMARKS, BUILD_PORTABLE, BUILD_MAIN };

struct emitter; /* eval/emit/emit.h */
struct evaluation;

struct build {                   /* lives in `arena` */
    struct process_spec spec;    /* the sandboxed compiler, ready to start */
    const char *artifact;        /* path of the shared object or program that will be there */
    const char *log, *signature; /* a remarks file; what a baseline has to define; or NULL */
    unsigned width;              /* processes that compute for it side by side; 0: one */
};

struct program { /* what a runner holds; what it points to stays while the subject lives */
    const struct problem *problem;
    const struct candidate *candidate; /* NULL: a trusted source that has no front matter */
    const struct names *tune;
    const char *const *env; /* or NULL */
};

struct compile_only { /* a candidate where no device can run it; borrowed */
    const struct problem *problem;
    const char *name, *source;
    size_t length;
    const struct value *tune; /* or NULL */
};

struct torch_device {         /* where a definition that is a PyTorch module is computed */
    const char *name;         /* PyTorch's */
    const char *fact;         /* of the lane, without which it is the CPU after all; or NULL */
    bool or_cpu;              /* so it is where this PyTorch knows no such device */
    const char *const *nodes; /* device files that its process may open; NULL-terminated */
    /* Environment in which it sees the lane's device alone; NULL-terminated, in `arena`. */
    const char *const *(*env)(struct arena *arena, int index);
};

/* A sanitizer whose processes work while the measuring thread does something else: sanitize() is
 * called by another thread then, which starts none of them; any thread's to say: */
enum sanitizer_hold {
    HOLD_NOTHING,
    HOLD_RUNS,  /* sanitize() makes all ready, and waits */
    HOLD_ALL,   /* it begins nothing more, and ends with what is begun */
    HOLD_CANCEL /* it ends at once, with ERR_CANCELLED */
};

struct backend {
    const struct target *target; /* its name and its languages */
    /* Device facts and versions, ceilings where they are remembered; `roofline` measures them anew
     * (about a second, blocking), and ceilings_remember() is the caller's. */
    int (*probe)(const int *cores, size_t core_count, bool roofline, struct arena *arena,
                 struct lane_facts *lane, struct err *err);
    /* ERR_ENVIRONMENT where no candidate could be built here, with what is missing. NULL: probe()
     * has said so. */
    int (*ready)(struct err *err);
    /* Writes what the compiler reads into `folder` and prepares its command. `baseline` (or NULL)
     * builds that trusted source instead of a candidate. */
    int (*build)(struct arena *arena, const struct lane_facts *lane, const struct problem *problem,
                 const struct candidate *candidate, const struct names *tune,
                 const struct baseline_spec *baseline, enum build_flavour flavour,
                 const char *folder, struct build *build, struct err *err);
    void (*empty)(const struct problem *problem, struct buf *source); /* does nothing; or NULL */
    /* Whether a candidate's BUILD_MAIN takes less than its build for all shapes. NULL: no look. */
    bool (*narrows)(const struct candidate *candidate);
    /* What can be said of a candidate where there is no device, as lines in `words` and as members
     * of an open JSON object; *err says what is missing for a verdict, or why nothing can be said
     * and both are as they were. -1: there is a verdict, `evaluation`, in `arena`. 1: there is a
     * device. Blocks. NULL: nothing can be said. */
    int (*compile_only)(const struct compile_only *asked, struct arena *arena,
                        struct evaluation *evaluation, struct buf *words, struct json *json,
                        struct err *err);
    /* Diagnostics as the candidate's author may see them: cut, and about the source alone. */
    void (*diagnostics)(const struct candidate *candidate, const char *text, size_t length,
                        struct buf *out);
    /* A runner with the artifact loaded: sandboxed, on the lane's cores. One whose candidate left
     * it whole may be used again; `fresh`: not for this one. */
    int (*open)(const struct lane_facts *lane, const struct region *region, const char *artifact,
                const struct program *program, bool fresh, struct subject **subject,
                struct err *err);
    /* Begins what the first build and runner will wait for, and waits for nothing; or NULL. */
    void (*warm)(const struct lane_facts *lane, const struct region *region);
    /* The same of a runner, before the lane's facts are known but for its device's number. */
    void (*warm_runner)(const struct lane_facts *lane, const struct region *region);
    void (*warm_compiler)(const struct language *language); /* may block, on its own thread */
    /* A profile of what is being checked is wanted: begins what that will wait for, which is ready
     * before anything is timed. NULL: nothing takes that long. */
    void (*warm_profile)(const struct lane_facts *lane, const struct region *region);
    /* The same for sanitize(), which whatever wins will need: not `all`: what takes longest. */
    void (*warm_sanitizer)(const struct lane_facts *lane, const struct region *region, bool all);
    /* NULL: sanitize() is called behind the timing, by the measuring thread alone. Not NULL: the
     * sanitized build is the fast one, and it reads inputs alone, from a region of its own. */
    void (*hold_sanitizer)(enum sanitizer_hold hold);
    bool device;      /* candidates run on a device of their own, whose clock times them */
    bool renews;      /* subjects: what has met a set is as good as new after a word */
    bool cuts_sums;   /* its matrix units may cut off what they add, where the host's round */
    size_t alignment; /* of every tensor; 0: TENSOR_ALIGN */
    const char *lock_folder;          /* locked while timing, until a probe names one; or NULL */
    const struct torch_device *torch; /* NULL: the CPU */
    /* That builds and runs plain C: references, and the baselines of a spec; NULL: this one.
     * Another one's baselines are files of its own languages. */
    const struct backend *reference;
    /* Runs a sanitized build once over each of `calls`; `together`: at the same time, where it can,
     * so that what fails without a report may have failed for that. ERR_CHILD with the report's
     * first lines where it finds something; ERR_UNSUPPORTED where the sanitizer is not installed.
     * 1: it was held before all was done, and goes on with the same calls asked for again, or, of
     * none, is let go. NULL: there is none. */
    int (*sanitize)(const struct lane_facts *lane, const struct region *region,
                    const char *artifact, const struct program *program, const struct call *calls,
                    size_t count, bool together, struct buf *report, struct err *err);
    /* Metrics, members of an open JSON object. ERR_PROTOCOL: what was timed is none: rejected.
     * NULL: there are none. */
    int (*profile)(const struct lane_facts *lane, const struct problem *problem,
                   const struct names *dims, const char *artifact, const char *remarks_log,
                   double time_ns, struct subject *subject, const struct call *call,
                   struct json *json, struct err *err);
    /* Runs a portable build once over `call`, counting: members of an open JSON object.
     * ERR_UNSUPPORTED where there is no such tool. NULL: this backend has none. */
    int (*cachegrind)(const struct lane_facts *lane, const struct region *region,
                      const char *artifact, const struct call *call, struct json *json,
                      struct err *err);
    /* Whether this compiler, or this finder of what checks miss, is installed. NULL: no needs. */
    bool (*tool)(const char *name);
    /* What compiles a language and is no part of lane_facts.versions, since not every lane needs
     * it: a JSON object, which blocks while it is found out. NULL here or returned: nothing. */
    const char *(*compilers)(struct arena *arena, const struct language *language);
    const struct emitter *emitter; /* NULL: `twagent emit` refuses its kernels */
    /* `twagent runner NAME ...`: a process of the backend's own; its exit code. NULL: none. */
    int (*runner)(int argc, char **argv);
    /* `twagent NAME-compile ...`: the compiler, where that is a library; the same. */
    int (*compiler)(int argc, char **argv);
    /* How many devices --devices may name here; ERR_ENVIRONMENT. Blocks. NULL: it has none. */
    int (*count)(struct arena *arena, int *count, struct err *err);
    /* `twagent doctor`: a section of what this machine has for it, blocking. NULL: none. */
    void (*describe)(void);
    /* The same: a line for each thing that is missing, with what it costs, once it was described.
     * `answer`: the lane's; NULL: none could be opened. Returns how many forbid the work. */
    int (*findings)(const struct value *answer, struct buf *out);
};
