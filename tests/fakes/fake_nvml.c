/* A libnvidia-ml.so.1 of one device whose clocks never change. The processes that compute on it are
 * its caller and the caller's parent, and as many times process 1 as $FAKE_NVML_OTHERS says; with
 * $FAKE_NVML_ELSEWHERE it counts them as another container does. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};

enum { INSUFFICIENT_SIZE = 7 };

#define EXPORT __attribute__((visibility("default"))) int

EXPORT nvmlInit_v2(void);
EXPORT nvmlInit_v2(void)
{
    return 0;
}

EXPORT nvmlShutdown(void);
EXPORT nvmlShutdown(void)
{
    return 0;
}

EXPORT nvmlSystemGetDriverVersion(char *version, unsigned length);
EXPORT nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    snprintf(version, length, "580.00");
    return 0;
}

EXPORT nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device);
EXPORT nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device)
{
    (void)pci;
    *device = device;
    return 0;
}

EXPORT nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz);
EXPORT nvmlDeviceGetClockInfo(void *device, int type, unsigned *mhz)
{
    (void)device;
    *mhz = type == 1 ? 1980 : 2619;
    return 0;
}

EXPORT nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned *mhz);
EXPORT nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned *mhz)
{
    return nvmlDeviceGetClockInfo(device, type, mhz);
}

EXPORT nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
EXPORT nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    (void)device, (void)sensor;
    *celsius = 33;
    return 0;
}

EXPORT nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
EXPORT nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    (void)device;
    *milliwatts = 70000;
    return 0;
}

EXPORT nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);
EXPORT nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    (void)device;
    *reasons = 0;
    return 0;
}

EXPORT nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *list);
EXPORT nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct process *list)
{
    const char *others = getenv("FAKE_NVML_OTHERS");
    unsigned shift = getenv("FAKE_NVML_ELSEWHERE") != NULL ? 1u << 24 : 0;
    unsigned more = others != NULL ? (unsigned)strtoul(others, NULL, 10) : 0, room = *count;
    (void)device;
    *count = 2 + more;
    if (room < *count)
        return INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < *count; i++)
        list[i] = (struct process){.pid = 1 + shift};
    list[0].pid = (unsigned)getpid() + shift;
    list[1].pid = (unsigned)getppid() + shift;
    return 0;
}
