/* base/mem: allocation that cannot fail, since running out of memory aborts.
 * Any thread. Tests count down to a failure with mem_fail_after(). */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

void *mem_alloc(size_t bytes);               /* zeroed; never NULL; free with mem_free() */
void *mem_array(size_t count, size_t bytes); /* zeroed; aborts on overflow of count * bytes */
void *mem_resize(void *memory, size_t bytes);
char *mem_strdup(const char *text);
void mem_free(void *memory); /* NULL is fine */

#define MEM_NEW(type) ((type *)mem_alloc(sizeof(type)))

#endif
