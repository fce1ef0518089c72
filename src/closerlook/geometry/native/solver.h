/* The solver's fields, shared by hull.c, active.c, price.c and state.c. */
#ifndef CLOSERLOOK_SOLVER_H
#define CLOSERLOOK_SOLVER_H

#include "hull.h"

struct Solver {
    const double *X;
    const float *single;
    double longest;
    int64_t d, cap;
    Crew *crew;
    /* the active set, in the order of the columns of R */
    int64_t k;
    int64_t *place;
    signed char *side; /* +1: A, -1: B */
    double *weight;
    double **row;  /* its signed row, relative to the origin */
    double *R, *ya, *yb, *x, *g, *z, *t;
    double lift; /* squared lifting coordinate */
    double *origin, *w, *normal, *point;
    /* the shortlist */
    int64_t *list_a, *list_b, n_list_a, n_list_b;
    float *price, *w_single;
    int64_t priced;
    double lower, upper, low_a, high_b;
    int64_t steps, pricings;
};

void solver_load(Solver *s, const State *state);

#endif
