/* As main() begins. */
#include "cli/backends.h"

__attribute__((constructor)) static void begin(void)
{
    backends_begin();
}
