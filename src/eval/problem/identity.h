/* eval/problem/identity: which definition a problem is. Two problems of one name are two, and one
 * whose reference, tensors or tolerance were edited is another one than before. Any thread. */
#pragma once

#include "eval/problem/problem.h"

enum { IDENTITY_BYTES = 33 };

/* 32 hex digits of a hash over what decides which outputs are right: dims, tensors, tolerance, and
 * the text of the reference with the files of its folder that it imports, includes or names. Not
 * the problem's own name, its place, starts, baselines, check shapes, comments of the spec, nor a
 * size behind '@'. "": a file of it cannot be read. */
void problem_identity(const struct problem *problem, char text[IDENTITY_BYTES]);
/* The same of a PyTorch file, which need not be loaded: its text says everything. */
void problem_identity_of_module(const char *path, char text[IDENTITY_BYTES]);
