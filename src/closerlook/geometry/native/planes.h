/* Hyperplanes kept for pairs of labels, and the extent of each of their clusters on them. */
#ifndef CLOSERLOOK_PLANES_H
#define CLOSERLOOK_PLANES_H

#include <stdint.h>

#include "linkage.h"
#include "parallel.h"

typedef struct Planes Planes;

/* foe_start, foe: see engine.h; clear: clusters with a larger gap on a normal are provably separable. */
Planes *planes_new(const Linkage *link, const int64_t *foe_start, const int64_t *foe, double clear, Crew *crew);
void planes_add(Planes *planes, int64_t label, int64_t foe, const double *normal);

/*
 * Add the hyperplane that separates two clusters (upper) from two others (lower); the two may be the same. low: at most the smallest
 * projection of the upper clusters' points; high: at least the largest of the lower clusters'.
 */
void planes_add_found(Planes *planes, const int64_t upper[2], const int64_t lower[2], double low, double high,
                      const double *normal);

/* Count one more candidate. A full pool replaces the hyperplane that has been unused for the most candidates. */
void planes_tick(Planes *planes);

/* List the clusters of the label at this entry of foe, without some that are provably separable from the union of a and b. */
int64_t planes_foes(Planes *planes, int64_t entry, int64_t a, int64_t b, int64_t *slots);

/* Keep those of n slots, all of the label at this entry of foe, that no hyperplane separates from the union of a and b. */
int64_t planes_filter(Planes *planes, int64_t entry, int64_t a, int64_t b, int64_t *slots, int64_t n);

/* Update after the clusters of two slots were merged into one of them. */
void planes_merge(Planes *planes, int64_t slot, int64_t gone);

#endif
