/* The fields of the greedy merging, shared by greedy.c and candidate.c. */
#ifndef CLOSERLOOK_GREEDY_H
#define CLOSERLOOK_GREEDY_H

#include "cores.h"
#include "engine.h"
#include "hull.h"
#include "linkage.h"
#include "memory.h"
#include "parallel.h"
#include "planes.h"
#include "samples.h"

/* One call of the solver. */
typedef struct {
    Found found; /* the upper side is the solver's A */
    Points points; /* of the foe */
    const State *from; /* of one part of the union and the foe; NULL: none */
    Points news;       /* the points of the other part */
    int likely;        /* the two are probably separable: do not begin with samples */
    int verdict;
    int64_t n_active, *place;
    double *weight;
    signed char *side;
    int64_t steps;
} Trial;

/* Two clusters that may merge. */
typedef struct {
    int64_t a, b, large, small;
    int crowded;  /* many foes are left after the cheapest tests */
    int kind;     /* see cores.h */
    int64_t region; /* of all its points, or -1 */
} Candidate;

struct Greedy {
    Call *call;
    const double *X;
    float *single;
    float *frozen_lead;
    int64_t n, frozen, d;
    const int64_t *foe_start, *foe, *block_start, *block;
    double tau, slack, clear;
    Crew *crew;
    Linkage *link;
    Solver **solver;
    Planes *planes;
    Memory *memory;
    Cores *cores;
    Samples *samples;
    int64_t *last_blocker; /* for each slot; -1: none */
    int64_t passed[2];     /* foes of the candidate that were tested first */
    int64_t *rest, rest_n, *place;
    int64_t *members, members_n, **foe_members;
    int64_t news; /* the members begin with those of the smaller part; there are none before the solver is needed */
    double *union_mean;
    float union_lead[LEADS], *bound;
    double union_radius;
    Trial *trial;
    Counts counts;
    int64_t limit;            /* attempts to merge, at most; -1: no limit */
    const signed char *alone; /* with a limit: whether a point never merges; may be NULL */
    Refused *blocked;         /* with a limit: all blocked pairs; the linkage has those that were tried since they last grew */
    int64_t *merge_a, *merge_b;
    double *merge_distance;
    int64_t *refusal, refusal_room; /* 4 numbers each */
    int64_t *weight_place, weight_room;
    double *weight;
    signed char *weight_side;
};

/* Whether the clusters of two slots may merge; if not, the blocked merge is recorded. */
int candidate_allowed(Greedy *g, int64_t a, int64_t b);

#endif
