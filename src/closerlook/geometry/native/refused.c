/* A hash table of pairs, and for each slot the list of its partners. Memory grows with the number of blocked merges. */
#include "refused.h"

#include "call.h"
#include "sizes.h"

enum { ROOM = SIZE(64, 2) }; /* of a new table: a power of two */

typedef struct {
    int64_t n, room, *slot;
} Partners;

struct Refused {
    int64_t slots;
    int64_t *name, names; /* the number of each slot's present cluster, and of all clusters so far; NULL: the slot itself */
    Partners *of; /* for each slot */
    uint64_t *key, n, room; /* open addressing; 0: empty; room is a power of two */
};

Refused *refused_new(int64_t slots, int forgets)
{
    Refused *r = allocate_zeros(1, sizeof *r);
    r->slots = r->names = slots;
    if (forgets) {
        r->name = allocate(slots + 1, sizeof(int64_t));
        for (int64_t i = 0; i < slots; i++) r->name[i] = i;
    }
    r->of = allocate_zeros(slots + 1, sizeof(Partners));
    r->room = ROOM;
    r->key = allocate_zeros(r->room, sizeof(uint64_t));
    return r;
}

int refused_forgets(const Refused *r) { return r->name != NULL; }

/* Where a key is in the table, or the empty place for it. */
static uint64_t place_of(const Refused *r, uint64_t key)
{
    uint64_t at = key * 0x9E3779B97F4A7C15u;
    for (at ^= at >> 31;; at++) {
        uint64_t place = at & (r->room - 1);
        if (!r->key[place] || r->key[place] == key) return place;
    }
}

static uint64_t key_of(const Refused *r, int64_t a, int64_t b)
{
    if (r->name) a = r->name[a], b = r->name[b];
    return (uint64_t)(a < b ? a : b) * 2 * (uint64_t)r->slots + (uint64_t)(a < b ? b : a) + 1; /* n points make < 2 n clusters */
}

int refused_has(const Refused *r, int64_t a, int64_t b)
{
    return r->of[a].n && r->of[b].n && r->key[place_of(r, key_of(r, a, b))];
}

static void enlarge(Refused *r)
{
    uint64_t *old = r->key, room = r->room;
    r->room *= 2;
    r->key = allocate_zeros(r->room, sizeof(uint64_t));
    for (uint64_t i = 0; i < room; i++)
        if (old[i]) r->key[place_of(r, old[i])] = old[i];
    release(old);
}

static void append(Partners *p, int64_t slot)
{
    if (p->n == p->room) {
        p->room = 2 * p->room + 4;
        p->slot = reallocate(p->slot, p->room, sizeof(int64_t));
    }
    p->slot[p->n++] = slot;
}

void refused_add(Refused *r, int64_t a, int64_t b)
{
    if (2 * r->n >= r->room) enlarge(r);
    uint64_t key = key_of(r, a, b), place = place_of(r, key);
    if (r->key[place]) return;
    r->key[place] = key;
    r->n++;
    append(&r->of[a], b), append(&r->of[b], a);
}

void refused_merge(Refused *r, int64_t slot, int64_t gone)
{
    if (r->name) {
        r->name[slot] = r->names++;
        r->of[slot].n = 0;
    }
    for (int64_t i = 0; !r->name && i < r->of[gone].n; i++)
        if (r->of[gone].slot[i] != slot) refused_add(r, slot, r->of[gone].slot[i]);
    release(r->of[gone].slot);
    r->of[gone] = (Partners){0};
}
