/* cli/doctor_gpu: what this machine has for the backend cuda, and what it lacks. */
#ifndef CLI_DOCTOR_GPU_H
#define CLI_DOCTOR_GPU_H

/* Prints a section. Asks each GPU's driver in a short-lived process of its own; blocking. */
void doctor_gpu(void);

#endif
