/* The active set of a solver: points of both sides, their weights, and the smallest |w| that they allow. */
#ifndef CLOSERLOOK_ACTIVE_H
#define CLOSERLOOK_ACTIVE_H

#include "solver.h"

/* Add a point with weight 0; returns 0 if it lies in the affine hull of the set already. */
int active_enter(Solver *s, int64_t place, signed char side);

/* Minimise |w| over the set with weights >= 0, dropping points whose weight becomes 0; returns |w|^2. */
double active_descend(Solver *s, double tolerance);

/* Set w from the given weights; returns |w|^2. */
double active_combine(Solver *s, const double *weight);

/* Write a point's signed row, relative to the origin. */
void active_row(const Solver *s, double *row, int64_t place, signed char side);

#endif
