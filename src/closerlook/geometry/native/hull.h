/* The nearest points of two convex hulls. */
#ifndef CLOSERLOOK_HULL_H
#define CLOSERLOOK_HULL_H

#include <stddef.h>
#include <stdint.h>

#include "engine.h"
#include "parallel.h"

/* A finite set of points: rows of X. */
typedef struct {
    const int64_t *places;
    int64_t n;
    const double *mean;
} Points;

typedef struct {
    double tau;       /* hulls nearer than this overlap */
    double slack;     /* bound on the rounding error of a projection on a unit vector */
    double gap;       /* relative gap to which the distance is computed; 0: stop at the first proof */
    int64_t max_steps;
    int rough; /* start in single precision; then solver_save() has no factor to save */
} Wanted;

typedef struct Solver Solver;

/* single: X in single precision, to scan many points; longest: the length of the longest row; most: points in two sets. */
Solver *solver_new(const double *X, const float *single, double longest, int64_t d, int64_t most);
void solver_share(Solver *s, Crew *crew); /* threads that help with large sets; NULL: none */

/* The state of a solver after a call; a later call on larger sets can continue from it. */
typedef struct State State;

State *solver_save(const Solver *s);
size_t state_size(const State *state);
int64_t state_active(const State *state);

/*
 * Decide two sets of points. from: NULL, or the state of A and B before some points were added; `news` are these points, on
 * the side of A (side 1) or B (-1).
 */
int solve(Solver *s, Points A, Points B, const Wanted *wanted, const State *from, Points news, int side);

/* After a call: the unit normal (towards A) of the best hyperplane, bounds of the distance, weights of both sides. */
const double *solver_normal(const Solver *s);
double solver_lower(const Solver *s); /* proved: rounding is subtracted */
double solver_upper(const Solver *s); /* proved: rounding is added */
double solver_low_a(const Solver *s);  /* smallest projection of A on the normal */
double solver_high_b(const Solver *s); /* largest projection of B */
int64_t solver_active(const Solver *s, int64_t *places, double *weight, signed char *side);
int64_t solver_active_n(const Solver *s);
int64_t solver_steps(const Solver *s);
int64_t solver_pricings(const Solver *s);

#endif
