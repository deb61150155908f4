/* agents/proposer/surrogate: a Gaussian process over the tune spaces of all starts: what to expect
 * at a point, and how surely. Pure; one owner, any thread. Rasmussen and Williams, "Gaussian
 * Processes for Machine Learning" (2006), algorithm 2.1; hyperparameters by maximum a posteriori.
 *
 *   k((a,x), (b,y)) = mean_sd^2 [a = b]
 *                   + s^2 w (r + (1 - r)[a = b]) sum_j m(d_j) / sqrt(|a| |b|)
 *                   + s^2 (1 - w) [a = b] m(sqrt(sum_j d_j^2))
 *
 * with m the Matern 5/2 correlation, j over the parameters that both starts have by name, d_j the
 * distance along j over its length, |a| the number of a's parameters. The additive part learns each
 * parameter's effect from few points, and carries it to other starts as far as r says; the joint
 * part learns what a start's parameters do together. */
#pragma once

#include "eval/candidate/candidate.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SURROGATE_POINTS_MAX = 128, SURROGATE_DIMS_MAX = 48, SURROGATE_SPACES_MAX = 64 };

struct surrogate; /* opaque */

struct tune_point {
    uint8_t space;
    uint8_t at[TUNE_MAX]; /* position in each parameter's list */
};

struct surrogate *surrogate_new(void);
void surrogate_free(struct surrogate *surrogate); /* NULL is fine */

/* Adds a space; returns its number, counted from 0, or -1 where there are too many spaces or names.
 * Parameters of equal names share a dimension; its coordinate runs over [0, 1], on a logarithmic
 * scale where its values are positive and span a factor of four. `parameters` is borrowed. */
int surrogate_add(struct surrogate *surrogate, const struct tune_parameter *parameters,
                  size_t count);

/* Conditions on y[i] (logarithm of time) at points[i]; count <= SURROGATE_POINTS_MAX. The mean of
 * each space is drawn from N(mean, mean_sd). `refine`: looks for better hyperparameters first,
 * starting from the present ones. */
void surrogate_fit(struct surrogate *surrogate, const struct tune_point *points, const double *y,
                   size_t count, double mean, double mean_sd, bool refine);

void surrogate_predict(const struct surrogate *surrogate, const struct tune_point *point,
                       double *mean, double *deviation);

/* Distance of two points of one space in the coordinates, lengths left out. */
double surrogate_distance(const struct surrogate *surrogate, const struct tune_point *a,
                          const struct tune_point *b);

int surrogate_steps(const struct tune_point *a, const struct tune_point *b); /* that differ */

/* Times far above the best one say little more than "far above": their logarithm is bent, so that
 * one cliff does not stretch the whole model. */
double surrogate_bend(double log_time, double best);

/* E[max(target - Y, 0)] for Y ~ N(mean, deviation), with Y held above `floor`. */
double surrogate_improvement(double target, double mean, double deviation, double floor);
