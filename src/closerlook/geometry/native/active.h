/* The active set of a solver: points of both sides, their weights, and the smallest |w| that they allow. */
#ifndef CLOSERLOOK_ACTIVE_H
#define CLOSERLOOK_ACTIVE_H

#include "solver.h"

enum { COMING = 3 }; /* points that may enter at once: more need fewer steps, but more of them leave again */

/* Add at most COMING points with weight 0; returns the number of those that did not lie in the affine hull of the set already. */
int active_enter(Solver *s, const int64_t *places, int64_t n, signed char side);

/* Minimise |w| over the set with weights >= 0, dropping points whose weight becomes 0; returns |w|^2. */
double active_descend(Solver *s, double tolerance);

/* Move towards x until a weight becomes 0, and drop its point; returns 0 and does nothing if all of x is positive. */
int active_cut(Solver *s);

/* Set w from the given weights; returns |w|^2. */
double active_combine(Solver *s, const double *weight);

/* Compute the factor anew from the active points, which loses the rounding errors of its updates. */
void active_rebuild(Solver *s);

/* The multipliers (la, lb) with M (la, lb) = (ra, rb), M the Gram matrix of ya and yb. */
void active_multipliers(const Solver *s, double ra, double rb, double *la, double *lb);

/*
 * Correct the weights x in double-double arithmetic until the projections of each side agree to `tolerance` of |w|^2, and
 * set w; returns |w|^2.
 */
double active_refine_precisely(Solver *s, double tolerance);

/* Write a point's signed row, relative to the origin. */
void active_row(const Solver *s, double *row, int64_t place, signed char side);

#endif
