#include "store/environment.h"
#include "store/internal.h"
#include "store/store.h"

const char *store_folder(const struct store *store)
{
    return store->environment->folder;
}
