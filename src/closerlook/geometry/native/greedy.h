/* DirectProbe's greedy merging: merge the closest clusters of a label unless the union overlaps another label's cluster. */
#ifndef CLOSERLOOK_GREEDY_H
#define CLOSERLOOK_GREEDY_H

#include <stdint.h>

typedef struct Greedy Greedy;

typedef struct {
    int64_t merges, refusals, undecided, foes, by_plane, by_sphere, by_memory, by_means, solved, steps, weights;
} Counts;

/*
 * X: (n + frozen) x d. The first n rows are points that may merge, sorted by label (start: labels + 1 offsets). The other
 * rows belong to no cluster and block the labels that list them. basis: see linkage.h. foes: for each label, the labels whose
 * hull it overlaps (foe_start: labels + 1 offsets); blocks: likewise the frozen rows. order: rank of the points for ties.
 */
Greedy *greedy_new(const double *X, int64_t n, int64_t frozen, int64_t d, int64_t labels, const int64_t *start,
                   const int64_t *order, const double *mass, const double *basis, const int64_t *foe_start,
                   const int64_t *foe, const int64_t *block_start, const int64_t *block, double tau, double slack,
                   double tie, int threads);
void greedy_free(Greedy *g);
void greedy_add_plane(Greedy *g, int64_t label, int64_t foe, const double *normal);

/* Continue for about this many seconds; returns 1 when nothing is left to merge. */
int greedy_run(Greedy *g, double seconds);

Counts greedy_counts(const Greedy *g);
void greedy_owners(const Greedy *g, int64_t *owner);
void greedy_merges(const Greedy *g, int64_t *a, int64_t *b, double *distance); /* the smallest rank of each cluster */
/* Blocked merges: a point of each cluster, a point of the blocking one (n + i: frozen row i), where the weights begin. */
void greedy_refusals(const Greedy *g, int64_t *a, int64_t *b, int64_t *blocker, int64_t *begin);
void greedy_weights(const Greedy *g, int64_t *place, double *weight, signed char *side);

#endif
