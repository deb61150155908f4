#include "base/library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *library_function(struct library *library, const char *name)
{
    if (library->handle == NULL)
        library->handle = dlopen(library->name, RTLD_NOW | RTLD_LOCAL);
    void *function = library->handle != NULL ? dlsym(library->handle, name) : NULL;
    if (function == NULL) {
        fprintf(stderr, "twagent: %s\n", dlerror());
        exit(127);
    }
    return function;
}
