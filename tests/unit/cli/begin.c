/* As main() begins. */
#include "cli/options/backends.h"

__attribute__((constructor)) static void begin(void)
{
    backends_begin();
}
