/* eval/backend: what a backend gives the worker; one const table each, listed in
 * src/cli/backends.c. A build is two steps, so that the compiler runs on the worker's loop
 * (loop/process) and the rest on its measuring thread. */
#ifndef EVAL_BACKEND_BACKEND_H
#define EVAL_BACKEND_BACKEND_H

#include "base/buf.h"
#include "base/json.h"
#include "eval/backend/lane_facts.h"
#include "eval/backend/subject.h"
#include "eval/problem/target.h"
#include "loop/process.h"

/* portable: a program without this machine's newest instructions, for a simulator of caches */
enum build_flavour { BUILD_FAST, BUILD_SANITIZED, BUILD_REMARKS, BUILD_PORTABLE };

struct build {                /* lives in `arena` */
    struct process_spec spec; /* the sandboxed compiler, ready to start */
    const char *artifact;     /* path of the shared object or program that will be there */
    const char *log;          /* path of the remarks file, or NULL */
};

struct program { /* what a launch plan is computed from; all three stay while the subject lives */
    const struct problem *problem;
    const struct candidate *candidate;
    const struct names *tune;
};

struct backend {
    const struct target *target; /* its name and its languages */
    /* Device facts and versions, ceilings where they are remembered; `roofline` also measures those
     * that are not (about a second, blocking). */
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
    /* Diagnostics as the candidate's author may see them: cut, and about the source alone. */
    void (*diagnostics)(const struct candidate *candidate, const char *text, size_t length,
                        struct buf *out);
    /* A fresh runner with the artifact loaded: sandboxed, on the lane's cores. `env`: or NULL. */
    int (*open)(const struct lane_facts *lane, const struct region *region, const char *artifact,
                const char *const *env, struct subject **subject, struct err *err);
    /* The same for a backend whose candidates have launch plans, in place of open(). Runners whose
     * candidate left them whole are used again; `fresh`: not for this one. */
    int (*open_program)(const struct lane_facts *lane, const struct region *region,
                        const char *artifact, const struct program *program, bool fresh,
                        struct subject **subject, struct err *err);
    /* Begins what the first build and runner will wait for, and waits for none of it;
     * `drawn_bytes`: the most that one input of floats has. NULL: nothing takes that long. */
    void (*warm)(const struct lane_facts *lane, const struct region *region, size_t drawn_bytes);
    /* A profile of what is being checked is wanted: begins what that will wait for, which is ready
     * before anything is timed. NULL: nothing takes that long. */
    void (*warm_profile)(const struct lane_facts *lane, const struct region *region);
    /* draw_run() on a device; false: draw it yourself. NULL: there is none. */
    bool (*draw)(const struct drawing *drawing, size_t count, void *out);
    bool cuts_sums;   /* its matrix units may cut off what they add, where the host's round */
    size_t alignment; /* of every tensor; 0: TENSOR_ALIGN */
    const struct backend *reference; /* that builds and runs C references; NULL: this one */
    /* Runs a sanitized build once over `call`; ERR_CHILD with the report's first lines where it
     * finds something; ERR_UNSUPPORTED where the sanitizer is not installed. */
    int (*sanitize)(const struct lane_facts *lane, const struct region *region,
                    const char *artifact, const struct call *call, struct buf *report,
                    struct err *err);
    /* The same for launch plans; sanitize_end() has the last word: ERR_CHILD as above. */
    int (*sanitize_program)(const struct lane_facts *lane, const struct region *region,
                            const char *artifact, const struct program *program,
                            const struct call *call, struct buf *report, struct err *err);
    int (*sanitize_end)(struct buf *report, struct err *err);
    /* Metrics, members of an open JSON object. ERR_PROTOCOL: what was timed is none: rejected. */
    int (*profile)(const struct lane_facts *lane, const struct problem *problem,
                   const struct names *dims, const char *artifact, const char *remarks_log,
                   double time_ns, struct subject *subject, const struct call *call,
                   struct json *json, struct err *err);
    /* Runs a portable build once over `call`, counting: members of an open JSON object.
     * ERR_UNSUPPORTED where there is no such tool. NULL: this backend has none. */
    int (*cachegrind)(const struct lane_facts *lane, const struct region *region,
                      const char *artifact, const struct call *call, struct json *json,
                      struct err *err);
};

#endif
