/* The active set of a solver: points of both sides, their weights, and the least |w| that they allow. */
#ifndef CLOSERLOOK_ACTIVE_H
#define CLOSERLOOK_ACTIVE_H

#include "solver.h"

/* Take a point in with weight 0; 0 if it lies in the affine hull of the set already. */
int active_enter(Solver *s, int64_t place, signed char side);

/* Go to the least |w| that the set allows with weights >= 0, dropping points on the way; returns |w|^2. */
double active_descend(Solver *s, double tolerance);

/* Make w that of some weights; returns |w|^2. */
double active_combine(Solver *s, const double *weight);

/* Write a point's signed row, relative to the origin. */
void active_row(const Solver *s, double *row, int64_t place, signed char side);

#endif
