/* For tests of what reads candidates: the program's targets are known before main(). */
#include "eval/cpu/target.h"
#include "eval/cuda/target.h"

__attribute__((constructor)) static void use_targets(void)
{
    static const struct target *const targets[] = {&target_cpu, &target_cuda, NULL};
    targets_use(targets);
}
