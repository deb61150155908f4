/* loop/process_private: what the files of loop/process share. */
#pragma once

#include "loop/process.h"

#include <sys/types.h>

/* --- process_spawn.c --- */

struct spawned {
    pid_t pid;
    int pidfd;                 /* readable when the child has exited */
    int input, output, errors; /* our ends; input is -1 where the child reads /dev/null */
};

/* Starts the child; returns after its exec, so a program that cannot run is an error here. Every
 * descriptor of ours is close-on-exec. Errors: ERR_ENVIRONMENT, ERR_USAGE. */
int process_spawn(const struct process_spec *spec, struct spawned *spawned,
                  struct err *err) MUST_USE;

/* --- process_output.c: bytes of a stream, the first and the last of them --- */

struct capture {
    char *data;
    size_t length, capacity; /* bytes held, bytes allocated */
    size_t max;              /* bytes kept: max / 2 head, the rest tail */
    size_t oldest;           /* where the tail's ring starts; only once length == max */
    uint64_t dropped;
};

void capture_init(struct capture *capture, size_t max);
void capture_free(struct capture *capture);
void capture_add(struct capture *capture, const char *bytes, size_t length);
const char *capture_text(struct capture *capture, size_t *length, uint64_t *dropped);

/* --- process_output.c: bytes of a stream that is read line by line --- */

struct lines {
    char *data;
    size_t start, length; /* unread bytes are data[start .. start + length) */
    size_t capacity, max; /* allocated; most unread bytes */
    size_t scanned;       /* of the unread bytes, known to hold no newline */
};

void lines_init(struct lines *lines, size_t max);
void lines_free(struct lines *lines);
bool lines_full(const struct lines *lines);
/* Room for the next read: a pointer to *room bytes (at least 1 unless full, at most `most`). */
char *lines_room(struct lines *lines, size_t most, size_t *room);
/* Counts bytes that were put into the room; true where a newline is among them. */
bool lines_added(struct lines *lines, size_t length);
bool lines_has_line(struct lines *lines);
const char *lines_next(struct lines *lines);
const char *lines_rest(struct lines *lines, size_t *length); /* all that is unread, as text */
