/*
 * The points of large clusters in such an order that the first ones are a sample of all. The hull of a sample lies inside the hull of
 * the cluster, so what overlaps a sample overlaps the cluster; only a proof that two hulls are separable needs all points.
 */
#ifndef CLOSERLOOK_SAMPLES_H
#define CLOSERLOOK_SAMPLES_H

#include "hull.h"
#include "linkage.h"
#include "sizes.h"

enum { LARGE_CLUSTER = SIZE(4096, 8) }; /* points of a cluster from which on samples are worth a call of the solver */

typedef struct Samples Samples;

Samples *samples_new(const Linkage *link);

/* Write n points so that every sample comes first: every few-th point of the next larger one, in ascending order. */
void samples_write(const int64_t *members, int64_t n, int64_t *places);

/* The points of a cluster, those of a large one in the order of its samples; room: where those of a small one are written to. */
Points samples_points(Samples *samples, int64_t slot, int64_t *room);

/* The cluster of slot `gone` became part of another one. */
void samples_merge(Samples *samples, int64_t gone);

/*
 * Decide two sets like solve(), on samples of large sets first. from, news, side: see hull.h; the state is one of A and B without
 * the news. steps: those of all calls of the solver.
 */
int solve_by_samples(Solver *s, Points A, Points B, const Wanted *wanted, const State *from, Points news, int side,
                     int64_t *steps);

#endif
