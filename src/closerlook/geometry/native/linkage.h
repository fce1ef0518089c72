/* Clusters of points by label, and the two clusters of one label whose means are closest. */
#ifndef CLOSERLOOK_LINKAGE_H
#define CLOSERLOOK_LINKAGE_H

#include <stdint.h>

#include "parallel.h"
#include "refused.h"
#include "sizes.h"

enum {
    NEAREST = SIZE(8, 1), /* neighbours remembered for each small cluster */
    GIANTS = SIZE(12, 2), /* clusters of a label that are giants, at most */
};

typedef struct {
    double distance;
    uint32_t slot, stamp;
} Neighbour;

typedef struct Giant Giant;

typedef struct {
    double *key;
    int64_t *slot, n, room;
} Heap;

/* Two clusters of one label and the distance between their means. */
typedef struct {
    int64_t a, b;
    double distance;
} Closest;

/* Every point starts as a cluster in the slot of its own number; a union stays in the slot of its larger part. */
typedef struct {
    const double *X;
    int64_t n, d, labels;
    const int64_t *start; /* first point of each label, and the end: labels + 1 entries */
    const int64_t *order; /* a point's rank for ties */
    double tie;           /* distances between means that differ by less are ties */
    double rounding;      /* relative error bound of a computed distance, with room to spare */
    int64_t *label;       /* for each slot */
    double *mean;         /* n x d */
    const double *basis;  /* LEADS - 1 orthonormal directions */
    double lead_error;    /* error bound of a distance between leads, in single precision */
    float *single;        /* n x d: means in single precision; NULL if leads are as long as they */
    double single_error, single_share; /* error bounds of a distance in single precision: absolute, and relative for its square */
    float *lead;          /* by seat: leading coordinates of the mean, and the length of the rest */
    double *mass, *radius;
    int64_t *size, *first; /* number of points of a cluster; their smallest rank */
    int64_t *next, *tail;  /* its points as a linked list, starting at the slot's own */
    int64_t *owner;        /* slot of each point's cluster */
    uint32_t *stamp;       /* changes when the slot's cluster does */
    int64_t *alive, *alive_n; /* slots in use: those of a label follow each other from start[label] on */
    int64_t *seat;         /* index of a slot in alive and lead */
    Neighbour *near;       /* n x NEAREST, closest first */
    int *near_n;
    double *beyond;        /* clusters that existed at the last scan and are not in the list are at least this far */
    Giant **giant;         /* for each slot; NULL for small clusters */
    int64_t *giants, *giant_slot; /* their number by label, and their slots: GIANTS each */
    Refused *refused;
    Heap heap;             /* see neighbours.h */
    double *queued;        /* the key of each slot in the heap; infinite: none */
    int64_t *tied, tied_n, tied_room; /* slots at the smallest distance */
    Closest *pair;         /* pairs at about that distance */
    int64_t pair_n, pair_room;
    float *bound;          /* n + 1 numbers of working memory for each thread */
} Linkage;

/* forgets: a blocked pair is a pair again as soon as one of its clusters grows. */
Linkage *linkage_new(const double *X, int64_t n, int64_t d, int64_t labels, const int64_t *start, const int64_t *order,
                     const double *mass, const double *basis, double tie, int forgets, Crew *crew);

/* Find the closest pair of clusters of one label that is not blocked; returns 0 if none is left. */
int linkage_closest(Linkage *l, int64_t *a, int64_t *b, double *distance);
int64_t linkage_merge(Linkage *l, int64_t a, int64_t b);
int64_t linkage_points(const Linkage *l, int64_t slot, int64_t *out);

/* The smallest (sign 1) or largest (sign -1) projection of a cluster's points from a given one on, or of a frozen row. */
double linkage_extreme(const Linkage *l, int64_t point, const double *w, double sign);

/* The same, but a number at least as extreme as the limit is enough: the search ends there. */
double linkage_extreme_from(const Linkage *l, int64_t point, const double *w, double sign, double limit);

/* Mean and lead of the union of two clusters, and a radius around that mean. */
double linkage_union(const Linkage *l, int64_t a, int64_t b, double *mean, float *lead);
void linkage_lead(const Linkage *l, const double *point, float *lead);

/* Whether points whose leads have this squared distance are provably farther apart than `reach`. */
int linkage_beyond(const Linkage *l, float square, double reach);

#endif
