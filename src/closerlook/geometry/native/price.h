/* The points that w separates worst: projections of all points, or of a shortlist of each side. */
#ifndef CLOSERLOOK_PRICE_H
#define CLOSERLOOK_PRICE_H

#include "sizes.h"
#include "solver.h"

enum { SHORTLIST = SIZE(16, 8) }; /* points of each side that are projected at every step */

/* The projections of a side's shortlist on sign * w; returns the smallest. */
typedef struct {
    double value[SHORTLIST], least;
    int64_t n;
} Prices;

void price_list(const Solver *s, const int64_t *list, int64_t n, double sign, Prices *p);

/* Project every point on w, update the shortlists, and keep the hyperplane if it is the best so far. */
double price_all(Solver *s, Points A, Points B, double length);

/* Update the shortlists only, in single precision. */
void price_roughly(Solver *s, Points A, Points B);

/* The smallest projection of some points on sign * w, and a shortlist of the points near it. */
double price_points(Solver *s, Points p, double sign, double length, int64_t *list, int64_t *n_list);

#endif
