/* Hyperplanes kept for pairs of labels, and where each of their clusters lies on them. */
#ifndef CLOSERLOOK_PLANES_H
#define CLOSERLOOK_PLANES_H

#include <stdint.h>

#include "linkage.h"
#include "parallel.h"

typedef struct Planes Planes;

/* foe_start, foe: see greedy.h; clear: clusters farther apart than this on a hyperplane's normal are surely apart. */
Planes *planes_new(const Linkage *link, const int64_t *foe_start, const int64_t *foe, double clear, Crew *crew);
void planes_free(Planes *planes);
void planes_add(Planes *planes, int64_t label, int64_t foe, const double *normal);

/* Another candidate is looked at. A full pool gives up the hyperplane that has settled nothing for the most candidates. */
void planes_tick(Planes *planes);

/* Keep of n slots, all of the label at this entry of foe, those that no hyperplane parts from the union of a and b. */
int64_t planes_filter(Planes *planes, int64_t entry, int64_t a, int64_t b, int64_t *slots, int64_t n);

/* The clusters of two slots were merged: one of the slots is gone. */
void planes_merge(Planes *planes, int64_t slot, int64_t gone);

#endif
