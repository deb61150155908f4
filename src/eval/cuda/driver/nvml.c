#include "eval/cuda/driver/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct nvml_device_ *nvml_device;

struct nvml_process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance, compute_instance;
};

struct nvml { /* by their symbols: nvml.h of the toolkit has the contracts */
    int (*init)(void);
    int (*shutdown)(void);
    int (*driver)(char *version, unsigned length);
    int (*by_pci)(const char *pci, nvml_device *device);
    int (*clock)(nvml_device device, int type, unsigned *mhz);
    int (*most_clock)(nvml_device device, int type, unsigned *mhz);
    int (*temperature)(nvml_device device, int sensor, unsigned *celsius);
    int (*power)(nvml_device device, unsigned *milliwatts);
    int (*throttle)(nvml_device device, unsigned long long *reasons);
    int (*processes)(nvml_device device, unsigned *count, struct nvml_process *list); /* or NULL */
};

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, PROCESSES_MOST = 64, ANCESTORS_MOST = 64 };

static bool look_up(void *library, struct nvml *nvml)
{
    const struct {
        void *function;
        const char *symbol;
    } wanted[] = {{&nvml->init, "nvmlInit_v2"},
                  {&nvml->shutdown, "nvmlShutdown"},
                  {&nvml->driver, "nvmlSystemGetDriverVersion"},
                  {&nvml->by_pci, "nvmlDeviceGetHandleByPciBusId_v2"},
                  {&nvml->clock, "nvmlDeviceGetClockInfo"},
                  {&nvml->most_clock, "nvmlDeviceGetMaxClockInfo"},
                  {&nvml->temperature, "nvmlDeviceGetTemperature"},
                  {&nvml->power, "nvmlDeviceGetPowerUsage"},
                  {&nvml->throttle, "nvmlDeviceGetCurrentClocksThrottleReasons"}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *symbol = dlsym(library, wanted[i].symbol);
        if (symbol == NULL)
            return false;
        *(void **)wanted[i].function = symbol;
    }
    *(void **)&nvml->processes = dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
    return true;
}

static struct nvml watching;
static nvml_device watched; /* NULL: none */

bool nvml_watch(const char *pci)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library != NULL && look_up(library, &watching) && watching.init() == 0 &&
        watching.by_pci(pci, &watched) != 0)
        watched = NULL;
    return watched != NULL;
}

/* 0: no such process that we can see. */
static long parent_of(long pid)
{
    char path[40], text[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *name_end = strrchr(text, ')'); /* "PID (name) STATE PARENT ..." */
    return name_end != NULL && strlen(name_end) > 4 ? strtol(name_end + 4, NULL, 10) : 0;
}

/* A child of the worker that started this runner is ours: another runner, PyTorch's. */
static bool is_ours(long pid)
{
    long worker = getppid();
    for (int i = 0; i < ANCESTORS_MOST && pid > 1; i++, pid = parent_of(pid))
        if (pid == worker)
            return true;
    return false;
}

/* Numbers of processes can be another container's, and then say nothing: where we stand in the list
 * ourselves they are of our own. */
static void count_others(struct device_state *state)
{
    struct nvml_process list[PROCESSES_MOST];
    unsigned count = PROCESSES_MOST, others = 0;
    bool mine = false;
    if (watching.processes == NULL || watching.processes(watched, &count, list) != 0)
        return;
    for (unsigned i = 0; i < count && i < PROCESSES_MOST; i++) {
        mine = mine || list[i].pid == (unsigned)getpid();
        others += !is_ours((long)list[i].pid);
    }
    if (!mine)
        return;
    state->other_looks = 1;
    state->others[0] = state->others[1] = others;
}

void nvml_look(struct device_state *state)
{
    unsigned sm = 0, memory = 0, celsius = 0;
    unsigned long long reasons = 0;
    *state = (struct device_state){0};
    if (watched == NULL || watching.clock(watched, CLOCK_SM, &sm) != 0 ||
        watching.clock(watched, CLOCK_MEMORY, &memory) != 0)
        return;
    (void)watching.temperature(watched, 0, &celsius);
    (void)watching.throttle(watched, &reasons);
    *state = (struct device_state){.looks = 1,
                                   .sm_mhz = {sm, sm},
                                   .memory_mhz = {memory, memory},
                                   .celsius = {celsius, celsius},
                                   .limits = reasons};
    count_others(state);
}

static void put_device(const struct nvml *nvml, nvml_device device, struct json *json)
{
    unsigned number;
    unsigned long long reasons;
    if (nvml->clock(device, CLOCK_SM, &number) == 0)
        json_put_int(json, "sm_clock_mhz", number);
    if (nvml->most_clock(device, CLOCK_SM, &number) == 0)
        json_put_int(json, "sm_clock_most_mhz", number);
    if (nvml->clock(device, CLOCK_MEMORY, &number) == 0)
        json_put_int(json, "memory_clock_mhz", number);
    if (nvml->temperature(device, 0, &number) == 0)
        json_put_int(json, "temperature_celsius", number);
    if (nvml->power(device, &number) == 0)
        json_put_int(json, "power_milliwatts", number);
    if (nvml->throttle(device, &reasons) == 0)
        json_put_int(json, "clock_limits", (int64_t)reasons);
}

void nvml_put(const char *pci, struct json *json)
{
    struct nvml nvml;
    nvml_device device;
    char version[96];
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return;
    if (look_up(library, &nvml) && nvml.init() == 0) {
        if (nvml.driver(version, sizeof version) == 0)
            json_put_text(json, "driver", version);
        if (nvml.by_pci(pci, &device) == 0)
            put_device(&nvml, device, json);
        (void)nvml.shutdown();
    }
    dlclose(library);
}
