/* store/open: opens the LMDB environment of a data file that is there, after looking it over.
 * Only environment.c and tests include this. */
#ifndef STORE_OPEN_H
#define STORE_OPEN_H

#include "base/err.h"
#include "store/environment.h"

/* Sets `lmdb` and the tables. ERR_CORRUPT, ERR_UNSUPPORTED with what to do. */
int environment_open(struct environment *environment, struct err *err) MUST_USE;

#endif
