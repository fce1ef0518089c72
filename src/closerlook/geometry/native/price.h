/* Which points w separates worst: the projections of all of them, or of a shortlist of each side. */
#ifndef CLOSERLOOK_PRICE_H
#define CLOSERLOOK_PRICE_H

#include "solver.h"

enum { SHORTLIST = 64 }; /* points of each side that are priced at every step */

/* The projections of a side's shortlist on sign * w, and the least of them. */
typedef struct {
    double value[SHORTLIST], least;
    int64_t n;
} Prices;

void price_list(const Solver *s, const int64_t *list, int64_t n, double sign, Prices *p);

/* Project every point on w, renew the shortlists, and keep the hyperplane if it is the best so far. */
double price_all(Solver *s, Points A, Points B, double length);

/* The least projection of some points on sign * w, and the shortlist of those that come near it. */
double price_points(Solver *s, Points p, double sign, double length, int64_t *list, int64_t *n_list);

#endif
