/*
 * The steps of active.c with the rows and the factor of the active points in single precision, which need about half the time. At
 * first w is in single precision too: then only the active points matter, and no bound comes from it. Later (exact_w) w is computed
 * from the points in double precision, and the factor only corrects the weights.
 */
#ifndef CLOSERLOOK_ROUGH_H
#define CLOSERLOOK_ROUGH_H

#include "solver.h"

void rough_begin(Solver *s); /* start with an empty active set; origin and lift are set */

/*
 * As active_enter and active_descend. tolerance: for exact_w, how well the projections of a side must agree, as a part of |w|^2. If
 * rough_descend returns NaN, rounding made the factor useless.
 */
int rough_enter(Solver *s, const int64_t *places, int64_t n, signed char side);
double rough_descend(Solver *s, double tolerance);

/* The projection of active point i on w. */
double rough_level(const Solver *s, int64_t i);

/* Remove column j from the rows and the factor. */
void rough_leave(Solver *s, int64_t j);

#endif
