/*
 * Regions of a linear classifier, and the core of each label: its points in its own region. Points of two regions are separable, and so
 * are all clusters inside them. The hull of a core contains every cluster of its label that lies inside the core, so a cluster that
 * is separable from the core is separable from all of them, whatever they merge into.
 */
#ifndef CLOSERLOOK_CORES_H
#define CLOSERLOOK_CORES_H

#include "linkage.h"

typedef struct Cores Cores;

/* region: for each point the label of its region; -1: none. foe_start, foe: see engine.h. */
Cores *cores_new(const Linkage *link, const int64_t *region, const int64_t *foe_start, const int64_t *foe);

int64_t cores_size(const Cores *cores, int64_t label); /* points of a core */

/* The points of a label's core, their number and their mean. */
const int64_t *cores_points(const Cores *cores, int64_t label, int64_t *n, const double **mean);

enum { CORE, OUTSIDE, MIXED }; /* all points of a cluster are in its label's core, none is, or some are */

int cores_kind(const Cores *cores, int64_t slot);
int cores_kind_of_union(const Cores *cores, int64_t a, int64_t b);
int64_t cores_region(const Cores *cores, int64_t a, int64_t b); /* the region with all points of both clusters; -1: none */

/* Whether the region of a cluster is another one than this. */
int cores_elsewhere(const Cores *cores, int64_t region, int64_t slot);

/* What is known about a cluster that is no core and the core of a label. */
int cores_is_apart(const Cores *cores, int64_t slot, int64_t label);
int cores_is_met(const Cores *cores, int64_t slot, int64_t label); /* no proof that they are separable was found */
void cores_set_apart(Cores *cores, int64_t slot, int64_t label);
void cores_set_met(Cores *cores, int64_t slot, int64_t label);

/* List the clusters of an entry's foe label, outside its core, that are not known to be separable from the core of the label. */
int64_t cores_open(Cores *cores, int64_t label, int64_t entry, int64_t *slots);

/* List the clusters of a label that are not inside its core. */
int64_t cores_others(Cores *cores, int64_t label, int64_t *slots);

/* The same for the union of two clusters, before it is formed. */
void cores_begin(Cores *cores);
void cores_union_apart(Cores *cores, int64_t label);
void cores_union_met(Cores *cores, int64_t label);

/* The two clusters have merged into `slot`. */
void cores_merge(Cores *cores, int64_t slot, int64_t gone);

/* Whether comparing clusters with cores succeeds often enough to be worth the time. */
int cores_useful(const Cores *cores);
void cores_count(Cores *cores, int succeeded);

#endif
