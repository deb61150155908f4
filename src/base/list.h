/* base/list: an intrusive doubly linked list; the link lives inside the item.
 * One owner, any thread. Header only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct link {
    struct link *previous, *next; /* both NULL: in no list */
};

struct list {
    struct link head; /* a ring through head; call list_init() first */
};

static inline void list_init(struct list *list)
{
    list->head.previous = list->head.next = &list->head;
}

static inline bool list_empty(const struct list *list)
{
    return list->head.next == &list->head;
}

static inline bool list_linked(const struct link *link)
{
    return link->next != NULL;
}

static inline void list_append(struct list *list, struct link *link)
{
    link->previous = list->head.previous;
    link->next = &list->head;
    list->head.previous->next = link;
    list->head.previous = link;
}

static inline void list_prepend(struct list *list, struct link *link)
{
    link->previous = &list->head;
    link->next = list->head.next;
    list->head.next->previous = link;
    list->head.next = link;
}

static inline void list_remove(struct link *link) /* a link in no list is left alone */
{
    if (link->next == NULL)
        return;
    link->previous->next = link->next;
    link->next->previous = link->previous;
    link->previous = link->next = NULL;
}

static inline struct link *list_pop(struct list *list) /* the first, or NULL */
{
    struct link *first = list->head.next;
    if (first == &list->head)
        return NULL;
    list_remove(first);
    return first;
}

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

/* The body may not remove `item`; list_each_safe's may. */
#define list_each(item, list)                                                                      \
    for (struct link *item = (list)->head.next; item != &(list)->head; item = item->next)
#define list_each_safe(item, list)                                                                 \
    for (struct link *item = (list)->head.next, *item##_next = item->next; item != &(list)->head;  \
         item = item##_next, item##_next = item->next)
