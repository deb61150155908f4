#include "cli/options/variables.h"

const struct variable variables[] = {
    {"TWAGENT_DATA", "where problems, templates and guides lie, if not beside the program"},
    {"TWAGENT_STORE_MAP_MIB", "the most that a store may grow to; 65536 where it is not set"},
    {"TWAGENT_TIMELINE", "a file to which workers write what each of their steps took"},
    {"TWAGENT_PDFTOTEXT", "the program that reads PDF files for `docs add`"},
    {"TWAGENT_LOCKS", "what is locked in place of the cores in /sys, for tests"},
    {"TWAGENT_NVRTC", "the library libnvrtc"},
    {"TWAGENT_CUDA_DRIVER", "the library libcuda"},
    {"TWAGENT_TRITON_PYTHON", "the Python that has Triton, for candidates in it"},
    {"TWAGENT_CUPTI", "the library libcupti, for hardware counters"},
    {"TWAGENT_WGPU", "the library libwgpu_native, which runs WGSL"},
    {"TWAGENT_COMPUTE_SANITIZER", "the program compute-sanitizer; empty: none"},
    {"TWAGENT_CUDA_SERVER", "0: each compile loads NVRTC by itself"},
    {"TWAGENT_CUDA_CACHE", "0: compiled cubins are not kept"},
    {"TWAGENT_ATTEMPT", "the folder that a coding agent works in; `mcp` speaks to its run"},
    {"TWAGENT_SELF", "the program that workers start as their children"},
    {"CUDA_HOME", "the CUDA toolkit, if not /usr/local/cuda"},
    {"CUDA_PATH", "the same, where CUDA_HOME is not set"},
    {"CUDA_VISIBLE_DEVICES", "which GPUs there are to be used"},
    {"XDG_CACHE_HOME", "what may be deleted: cubins, builds, ceilings, fits; else ~/.cache"},
    {"XDG_CONFIG_HOME", "config.yaml and models.yaml in its folder twagent; else ~/.config"},
    {"XDG_STATE_HOME", "the store in its folder twagent; else ~/.local/state"},
};
const size_t variable_count = sizeof variables / sizeof variables[0];
