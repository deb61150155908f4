#include "eval/cpu/compile.h"
#include "eval/cpu/cpu.h"
#include "eval/cpu/private.h"
#include "eval/cpu/target.h"

const struct backend backend_cpu = {
    .target = &target_cpu,
    .probe = cpu_probe,
    .ready = cpu_ready,
    .build = cpu_build,
    .diagnostics = cpu_diagnostics,
    .open = cpu_open,
    .sanitize = cpu_sanitize,
    .profile = cpu_profile,
    .cachegrind = cpu_cachegrind,
};
