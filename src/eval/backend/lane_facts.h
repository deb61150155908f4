/* eval/backend/lane_facts: what the worker knows of its lane, once a backend has probed it. Plain
 * values; texts live in the arena that probe() was given. Any thread. */
#pragma once

#include "base/expr.h"
#include "base/json.h"

struct lane_facts { /* what the worker knows of its lane, once opened */
    struct names
        facts;     /* for expressions: cores, l1_bytes, l2_bytes, l3_bytes, vector_bytes, ... */
    int cores[64]; /* CPUs of this lane */
    size_t core_count;
    double copy_bytes_per_s, read_bytes_per_s; /* measured over memory; 0: not measured */
    double flops_per_s; /* measured float32 FMA rate of all the lane's cores, or of the GPU */
    double tf32_flops_per_s, bf16_flops_per_s, fp16_flops_per_s; /* its matrix units; 0: none */
    bool under_load;      /* other programs had the cores when these were measured */
    const char *identity; /* the machine, or the device, whose ceilings these are; ceilings.h */
    bool gpu;             /* candidates run on a device of its own, whose clock times them */
    int gpu_index;        /* in the order of the PCI bus; set before probe(), which keeps it */
    /* What is missing of the walls around a candidate's code, as results are marked with it ("NOT
     * SANDBOXED: no seccomp"); NULL: nothing, or its code runs where it needs none. `exposed`: it
     * could reach the worker, which has the verdict. */
    const char *unconfined;
    bool exposed;
    const char *lock_path; /* a folder that is locked while timing, in place of the cores' */
    const char *device;    /* JSON object for the record */
    const char *versions;  /* JSON object for the record */
};

/* For probes: a lane of these cores, of which nothing is known yet; `gpu`: it keeps gpu_index. */
int lane_begin(struct lane_facts *lane, bool gpu, const int *cores, size_t count,
               struct err *err) MUST_USE;
/* "facts" of what a child that asked the driver answers; else its "error", or `none`. */
int lane_take_facts(struct lane_facts *lane, const struct value *answer, const char *none,
                    struct err *err) MUST_USE;

/* Its candidates' times are a device's own, whoever else is on the cores; not those of C, nor of an
 * adapter that is the cores. */
bool lane_is_apart(const struct lane_facts *lane);

/* What a backend's `torch` comes to on this lane; NULL: the CPU. */
struct torch_device;
const struct torch_device *lane_torch(const struct lane_facts *lane,
                                      const struct torch_device *device);

/* Operations a second of the fastest unit that the problem's precision allows. */
struct problem;
double lane_operations_rate(const struct lane_facts *lane, const struct problem *problem);
/* Whether a right kernel's time at the main shape is 10 % below what the ceilings allow. */
bool lane_beaten(const struct lane_facts *lane, const struct problem *problem, double time_ns);
/* "roofline", a member of an open JSON object: bytes over bandwidth and operations over their rate,
 * of which the longer time limits. What is not known is null, never 0. */
void lane_put_roofline(const struct lane_facts *lane, const struct problem *problem,
                       const struct names *dims, double time_ns, struct json *json);
