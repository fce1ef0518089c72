#include "memory.h"

#include <math.h>
#include <string.h>

#include "sizes.h"

static const size_t STATE_BYTES = SIZE((size_t)1 << 28, 1 << 12), NORMAL_BYTES = SIZE((size_t)1 << 27, 1 << 12);
static const size_t PAIRS = SIZE((size_t)1 << 18, 16), FEWEST_PAIRS = SIZE(256, 4); /* powers of 2 */
enum { WAYS = 4 }; /* a power of 2 */

/* A hyperplane with cluster `a` above and `b` below. */
typedef struct {
    int64_t a, b; /* slot + 1 */
    int64_t tail_a, tail_b; /* the last point included in low and high */
    double low, high;
    int solved;
    State *state;
} Pair;

typedef struct {
    Pair *pair;
    int64_t a, b;
    State *state;
} Renewed;

struct Memory {
    const Linkage *link;
    double clear;
    Pair *pair; /* a hash table of n entries in buckets of WAYS */
    double *normal;
    uint64_t n, sweep;
    size_t state_bytes;
    Renewed *renewed; /* hyperplanes of the union, kept if it is merged */
    int64_t renewed_n;
};

Memory *memory_new(const Linkage *link, int64_t most, double clear)
{
    Memory *m = allocate_zeros(1, sizeof *m);
    m->link = link, m->clear = clear;
    for (m->n = FEWEST_PAIRS; m->n < PAIRS && (int64_t)m->n < 64 * link->n;) m->n *= 2;
    while (m->n > FEWEST_PAIRS && m->n * link->d * sizeof(double) > NORMAL_BYTES) m->n /= 2;
    m->pair = allocate_zeros((int64_t)m->n, sizeof(Pair));
    m->normal = allocate_zeros((int64_t)m->n * link->d, sizeof(double)); /* pages are allocated only when used */
    m->renewed = allocate(most + 1, sizeof(Renewed));
    return m;
}

/* The first of the places where a pair of clusters may be stored; it does not depend on their order. */
static Pair *bucket_of(const Memory *m, int64_t a, int64_t b)
{
    uint64_t key = (uint64_t)(a < b ? a : b) * 0x9E3779B97F4A7C15u ^ (uint64_t)(a < b ? b : a) * 0xC2B2AE3D27D4EB4Fu;
    key ^= key >> 29, key *= 0xBF58476D1CE4E5B9u, key ^= key >> 32;
    return m->pair + (key & (m->n - 1) & ~(uint64_t)(WAYS - 1));
}

/* The entry for (part, foe), with either of them above; NULL if there is none. */
static Pair *find(const Memory *m, int64_t part, int64_t foe, int *above)
{
    Pair *p = bucket_of(m, part, foe);
    for (int i = 0; i < WAYS; i++, p++) {
        *above = p->a == part + 1 && p->b == foe + 1;
        if (*above || (p->a == foe + 1 && p->b == part + 1)) return p;
    }
    return NULL;
}

static double *normal_of(const Memory *m, const Pair *p) { return m->normal + (p - m->pair) * m->link->d; }

/* The points that a new hyperplane for an entry's clusters would have to be tested on; 0 if one of them is no more. */
static int64_t worth(const Linkage *l, const Pair *p)
{
    int64_t a = p->a > l->n ? 1 : p->a ? l->size[p->a - 1] : 0, b = p->b > l->n ? 1 : p->b ? l->size[p->b - 1] : 0;
    return a && b ? a + b : 0;
}

/* The entry for a pair of clusters: its present one, or that of its bucket which is easiest to find again. */
static Pair *entry_for(const Memory *m, int64_t a, int64_t b)
{
    int above;
    Pair *p = find(m, a, b, &above), *bucket = bucket_of(m, a, b);
    if (p) return p;
    int64_t least = INT64_MAX;
    for (int i = 0; i < WAYS; i++) {
        int64_t own = worth(m->link, bucket + i);
        if (own < least) least = own, p = bucket + i;
    }
    return p;
}

static int64_t tail_of(const Linkage *l, int64_t slot) { return slot < l->n ? l->tail[slot] : slot; }

/* Include the points that joined either cluster since; a union's points follow those of its larger part. */
static void catch_up(const Linkage *l, Pair *p, const double *w)
{
    int64_t a = tail_of(l, p->a - 1), b = tail_of(l, p->b - 1);
    if (p->tail_a != a) p->low = fmin(p->low, linkage_extreme(l, l->next[p->tail_a], w, 1)), p->tail_a = a;
    if (p->tail_b != b) p->high = fmax(p->high, linkage_extreme(l, l->next[p->tail_b], w, -1)), p->tail_b = b;
}

int memory_recall(Memory *m, int64_t part, int64_t other, int64_t foe, int keep)
{
    int above;
    Pair *p = find(m, part, foe, &above);
    if (!p) return 0;
    const double *w = normal_of(m, p);
    catch_up(m->link, p, w);
    if (p->low - p->high <= m->clear) return 0;
    double limit = above ? p->high + m->clear : p->low - m->clear;
    double reach = linkage_extreme_from(m->link, other, w, above ? 1 : -1, limit);
    if (above ? reach - p->high <= m->clear : p->low - reach <= m->clear) return 0;
    if (keep) {
        *(above ? &p->low : &p->high) = above ? fmin(p->low, reach) : fmax(p->high, reach);
        m->renewed[m->renewed_n++] = (Renewed){p, p->a, p->b, NULL};
    }
    return 1;
}

int memory_apart(Memory *m, int64_t slot, int64_t foe)
{
    int above;
    Pair *p = find(m, slot, foe, &above);
    if (!p) return 0;
    catch_up(m->link, p, normal_of(m, p));
    return p->low - p->high > m->clear;
}

const State *memory_state(const Memory *m, int64_t part, int64_t foe, int *turned)
{
    int above;
    const Pair *p = find(m, part, foe, &above);
    *turned = p && p->state && !above;
    return p ? p->state : NULL;
}

int memory_solved(const Memory *m, int64_t part, int64_t foe)
{
    int above;
    const Pair *p = find(m, part, foe, &above);
    return p && p->solved;
}

static void forget_state(Memory *m, Pair *p)
{
    m->state_bytes -= state_size(p->state);
    release(p->state);
    p->state = NULL;
}

static Pair *store(Memory *m, int64_t slot, const Found *f)
{
    int64_t a = f->turned ? f->foe : slot, b = f->turned ? slot : f->foe;
    Pair *p = entry_for(m, a, b);
    State *state = p->state;
    if (state && (p->a != a + 1 || p->b != b + 1)) state = NULL, forget_state(m, p);
    *p = (Pair){a + 1, b + 1, tail_of(m->link, a), tail_of(m->link, b), f->low, f->high, f->solved, state};
    memcpy(normal_of(m, p), f->normal, sizeof(double) * m->link->d);
    return p;
}

void memory_keep(Memory *m, int64_t slot, const Found *f)
{
    Pair *p = store(m, slot, f);
    m->renewed[m->renewed_n++] = (Renewed){p, p->a, p->b, f->state};
}

static void replace_state(Memory *m, Pair *p, State *state)
{
    if (!state) return;
    if (p->state) forget_state(m, p);
    p->state = state;
    m->state_bytes += state_size(state);
}

void memory_keep_now(Memory *m, int64_t slot, const Found *f) { replace_state(m, store(m, slot, f), f->state); }

void memory_confirm(Memory *m, int64_t slot)
{
    for (int64_t i = 0; i < m->renewed_n; i++) {
        Renewed *r = &m->renewed[i];
        Pair *p = r->pair;
        if (p->a != r->a || p->b != r->b) { /* another pair has replaced it */
            release(r->state);
            continue;
        }
        *(p->a == slot + 1 ? &p->tail_a : &p->tail_b) = m->link->tail[slot];
        replace_state(m, p, r->state);
    }
    m->renewed_n = 0;
    while (m->state_bytes > STATE_BYTES) { /* evict the next entries in the table */
        m->sweep = (m->sweep + 1) & (m->n - 1);
        if (m->pair[m->sweep].state) forget_state(m, &m->pair[m->sweep]);
    }
}

void memory_discard(Memory *m)
{
    for (int64_t i = 0; i < m->renewed_n; i++) release(m->renewed[i].state);
    m->renewed_n = 0;
}
