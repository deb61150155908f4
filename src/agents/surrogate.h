/* agents/surrogate: a Gaussian process over one tune space: what to expect at a point, and how
 * surely. Pure; one owner, any thread. Rasmussen and Williams, "Gaussian Processes for Machine
 * Learning" (2006), algorithm 2.1; hyperparameters by maximum a posteriori.
 *
 *   k(x, x') = mean_sd^2 + s^2 * (w * mean_j m(d_j) + (1 - w) * m(sqrt(sum_j d_j^2)))
 *
 * with m the Matern 5/2 correlation and d_j the distance along parameter j over its length. The
 * additive part learns each parameter's effect from few points; the joint one learns what they do
 * together. Points are positions in the parameters' lists. */
#ifndef AGENTS_SURROGATE_H
#define AGENTS_SURROGATE_H

#include "eval/candidate.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SURROGATE_POINTS_MAX = 128 };

struct surrogate; /* opaque */

struct tune_point {
    uint8_t at[TUNE_MAX]; /* position in each parameter's list */
};

/* Coordinates of each parameter's values, [0, 1]: logarithmic where they span a factor of four. */
struct surrogate *surrogate_new(const struct tune_parameter *parameters, size_t count);
void surrogate_free(struct surrogate *surrogate); /* NULL is fine */

/* Conditions on y[i] (logarithm of time) at points[i]; count <= SURROGATE_POINTS_MAX. The mean of
 * the whole space is drawn from N(mean, mean_sd). `refine`: looks for better hyperparameters first,
 * starting from the present ones. */
void surrogate_fit(struct surrogate *surrogate, const struct tune_point *points, const double *y,
                   size_t count, double mean, double mean_sd, bool refine);

void surrogate_predict(const struct surrogate *surrogate, const struct tune_point *point,
                       double *mean, double *deviation);

/* Distance of two points in the coordinates' space, lengths left out. */
double surrogate_distance(const struct surrogate *surrogate, const struct tune_point *a,
                          const struct tune_point *b);

#endif
