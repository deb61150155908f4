/* For tests of what reads candidates: the program's targets are known before main(). */
#include "eval/cpu/target.h"
#include "eval/cuda/target.h"
#include "eval/webgpu/target.h"

__attribute__((constructor)) static void use_targets(void)
{
    static const struct target *const targets[] = {&target_cpu, &target_cuda, &target_webgpu, NULL};
    targets_use(targets);
}
