/* The hyperplane that last separated two clusters, for many pairs; for large clusters also where the solver stood. */
#ifndef CLOSERLOOK_MEMORY_H
#define CLOSERLOOK_MEMORY_H

#include <stdint.h>

#include "hull.h"
#include "linkage.h"

typedef struct Memory Memory;

/* A hyperplane between a union and a foe. */
typedef struct {
    int64_t foe; /* slot, or n + i for a frozen row */
    int turned;  /* the foe is above, the union below; else the other way round */
    double low, high; /* the least projection of what is above, the largest of what is below */
    double *normal;
    State *state; /* where the solver stood, or NULL */
} Found;

/* most: foes of a union; clear: clusters farther apart than this on a hyperplane's normal are surely apart. */
Memory *memory_new(const Linkage *link, int64_t most, double clear);
void memory_free(Memory *memory);

/* Whether the hyperplane remembered for (part, foe) also keeps the other part away; keep: its extent is then the union's. */
int memory_recall(Memory *memory, int64_t part, int64_t other, int64_t foe, int keep);

/* The solver's state remembered for (part, foe), or NULL; turned: the foe was the solver's A. */
const State *memory_state(const Memory *memory, int64_t part, int64_t foe, int *turned);

/* Keep a hyperplane that has the union of a slot with another on one side and a foe on the other; takes over its state. */
void memory_keep(Memory *memory, int64_t slot, const Found *found);

/* The union was made in this slot: what was found for it holds for the slot from now on. */
void memory_confirm(Memory *memory, int64_t slot);

/* The union was not made: a state may hold points of the part that stays outside. */
void memory_discard(Memory *memory);

#endif
