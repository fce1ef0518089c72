/* The solver's fields, shared by hull.c, active.c, precise.c, price.c and state.c. */
#ifndef CLOSERLOOK_SOLVER_H
#define CLOSERLOOK_SOLVER_H

#include "hull.h"

typedef struct Rough Rough;

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
    int64_t *old_place; /* scratch of active_rebuild */
    signed char *old_side;
    /* with more digits: the lower halves of x, w and t */
    int precise;
    double *x_low, *w_low, *t_low;
    int rough, exact_w; /* rough.h: row, R, ya, yb and g are those of single_stage; w is in double precision nevertheless */
    Rough *single_stage;
    double lift; /* squared lifting coordinate */
    double *origin, *w, *normal, *point;
    /* the shortlist */
    int64_t *list_a, *list_b, n_list_a, n_list_b;
    float *price, *w_single;
    int64_t priced;
    double slack; /* bound on the rounding error of a distance with the present number of digits */
    double lower, upper, low_a, high_b;
    int64_t steps, pricings;
};

void solver_load(Solver *s, const State *state);

#endif
