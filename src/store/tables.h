/* store/tables: the names of the tables inside the data file. Any thread. */
#ifndef STORE_TABLES_H
#define STORE_TABLES_H

#include "store/store.h"

enum { STORE_TABLE_UNKNOWN = 256 };

/* The store's own table: "schema" and "next_run". */
#define STORE_SELF_NAME "store"

/* The last table of the first stores of this schema; each that came later may be missing. */
enum { STORE_TABLES_FIRST = STORE_LESSONS };

const char *store_table_name(enum store_table table);

/* An enum store_table, STORE_TABLE_SELF, or STORE_TABLE_UNKNOWN. */
unsigned store_table_number(const char *name);

#endif
