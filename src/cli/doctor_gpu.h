/* cli/doctor_gpu: what this machine has for the backend cuda, and what it lacks. */
#ifndef CLI_DOCTOR_GPU_H
#define CLI_DOCTOR_GPU_H

#include <stdbool.h>

/* What was found: GPUs that their driver shows, NVRTC. */
struct doctor_gpu {
    int gpus;
    bool nvrtc;
};

/* Prints a section. Asks each GPU's driver in a short-lived process of its own; blocking. */
struct doctor_gpu doctor_gpu(void);

/* A line for each thing that the backend cuda cannot do without and that was not found: what it is
 * for, and where it comes from. Returns how many. */
int doctor_gpu_missing(const struct doctor_gpu *found);

#endif
