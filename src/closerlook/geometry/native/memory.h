/* The hyperplane that last separated two clusters, for many pairs; for large clusters also the solver's state. */
#ifndef CLOSERLOOK_MEMORY_H
#define CLOSERLOOK_MEMORY_H

#include <stdint.h>

#include "hull.h"
#include "linkage.h"

typedef struct Memory Memory;

/* A hyperplane between a union and an opposing cluster (foe). */
typedef struct {
    int64_t foe; /* slot, or n + i for a frozen row; after these, one number for the core of each label */
    int turned;  /* the foe is above and the union below; otherwise the reverse */
    int solved;  /* the solver was needed to find it */
    double low, high; /* smallest projection of the upper side, largest of the lower side */
    double *normal;
    State *state; /* the solver's state, or NULL */
} Found;

/* most: largest number of foes of a union; clear: clusters with a larger gap on a normal are provably separable. */
Memory *memory_new(const Linkage *link, int64_t most, double clear);

/* Whether the stored hyperplane of (part, foe) also separates the other part; keep: update its extent to the union. */
int memory_recall(Memory *memory, int64_t part, int64_t other, int64_t foe, int keep);

/* The stored solver state of (part, foe), or NULL; turned: the foe was the solver's A. */
const State *memory_state(const Memory *memory, int64_t part, int64_t foe, int *turned);

/* Whether the stored hyperplane of (part, foe) needed the solver. */
int memory_solved(const Memory *memory, int64_t part, int64_t foe);

/* Store a hyperplane between the union of two slots and a foe; takes ownership of its state. */
void memory_keep(Memory *memory, int64_t slot, const Found *found);

/* The same for a cluster that exists and a foe. */
void memory_keep_now(Memory *memory, int64_t slot, const Found *found);

/* Whether the stored hyperplane of a cluster and a foe separates them, with all points that joined since. */
int memory_apart(Memory *memory, int64_t slot, int64_t foe);

/* The union was merged into this slot: its hyperplanes become those of the slot. */
void memory_confirm(Memory *memory, int64_t slot);

/* The union was blocked: discard its hyperplanes, as a state may contain points of the other part. */
void memory_discard(Memory *memory);

#endif
