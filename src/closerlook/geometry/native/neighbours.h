/* The smallest distance of each cluster: short lists for small clusters, heaps for giants. */
#ifndef CLOSERLOOK_NEIGHBOURS_H
#define CLOSERLOOK_NEIGHBOURS_H

#include "linkage.h"

/* The queue of all clusters, by a lower bound of their smallest distance: the lowest that was pushed. */
void queue_push(Linkage *l, int64_t slot, double key);
int64_t queue_pop(Linkage *l, double reach); /* -1: none has a bound within the reach */
double queue_first(const Linkage *l);        /* at most the lowest bound */

double neighbours_distance(const Linkage *l, int64_t a, int64_t b);

/* Fill the list of a small cluster from the first n seats of its label; bound: n numbers of working memory. */
void neighbours_scan(Linkage *l, int64_t slot, int64_t n, float *bound);

/* Fill the lists of points of one label from the points before each; bound: working memory as above. */
void neighbours_begin(Linkage *l, int64_t from, int64_t end, float *bound);

/* Drop merged and blocked clusters from a list; returns a lower bound of the cluster's smallest distance. */
double neighbours_key(Linkage *l, int64_t slot);

/* Whether a union of this size should become a giant. */
int giant_wanted(const Linkage *l, int64_t slot);
void giant_new(Linkage *l, int64_t slot);
void giant_free(Linkage *l, int64_t slot);
void giant_move(Linkage *l, int64_t slot, double step); /* its mean has moved by this distance */
void giants_meet(Linkage *l, int64_t slot);             /* a small cluster is new */

/* A lower bound of the giant's smallest distance; exact: whether it is that distance. */
double giant_key(Linkage *l, int64_t slot, int *exact);
void giant_refine(Linkage *l, int64_t slot);

/* Take out the next cluster within this reach; -1: none is left. */
int64_t giant_next(Linkage *l, int64_t slot, double reach, double *distance);
void giant_return(Linkage *l, int64_t slot, int64_t other, double distance);

#endif
