/* DirectProbe's greedy: merge the closest clusters of a label unless the union meets a cluster of another label. */
#ifndef CLOSERLOOK_GREEDY_H
#define CLOSERLOOK_GREEDY_H

#include <stdint.h>

typedef struct Greedy Greedy;

typedef struct {
    int64_t merges, refusals, undecided, foes, by_plane, by_sphere, by_memory, by_means, solved, steps, weights;
} Counts;

/*
 * X: (n + frozen) x d; the first n rows are points that may merge, sorted by label (start: labels + 1 offsets); the others
 * belong to no cluster and block all labels that name them. basis: see linkage.h. foes: for each label, the labels
 * whose hull it meets (foe_start: labels + 1); blocks: likewise the frozen rows. order: rank of the points for ties.
 */
Greedy *greedy_new(const double *X, int64_t n, int64_t frozen, int64_t d, int64_t labels, const int64_t *start,
                   const int64_t *order, const double *mass, const double *basis, const int64_t *foe_start,
                   const int64_t *foe, const int64_t *block_start, const int64_t *block, double tau, double slack,
                   double tie, int threads);
void greedy_free(Greedy *g);
void greedy_add_plane(Greedy *g, int64_t label, int64_t foe, const double *normal);

/* Go on for about this many seconds; 1 when nothing is left to merge. */
int greedy_run(Greedy *g, double seconds);

Counts greedy_counts(const Greedy *g);
void greedy_owners(const Greedy *g, int64_t *owner);
void greedy_merges(const Greedy *g, int64_t *a, int64_t *b, double *distance); /* their smallest ranks */
/* Of each refusal: a point of either cluster, one of the blocker (n + i: frozen row), where its weights begin. */
void greedy_refusals(const Greedy *g, int64_t *a, int64_t *b, int64_t *blocker, int64_t *begin);
void greedy_weights(const Greedy *g, int64_t *place, double *weight, signed char *side);

#endif
