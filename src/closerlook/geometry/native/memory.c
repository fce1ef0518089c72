#include "memory.h"

#include <math.h>
#include <string.h>

#include "sizes.h"

static const size_t STATE_BYTES = SIZE((size_t)1 << 28, 1 << 12), NORMAL_BYTES = SIZE((size_t)1 << 27, 1 << 12);
static const size_t PAIRS = SIZE((size_t)1 << 18, 16), FEWEST_PAIRS = SIZE(256, 4); /* powers of 2 */

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
    Pair *pair; /* a hash table: a new pair replaces an old one */
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

static Pair *place_of(const Memory *m, int64_t a, int64_t b, double **normal)
{
    uint64_t key = (uint64_t)a * 0x9E3779B97F4A7C15u ^ (uint64_t)b * 0xC2B2AE3D27D4EB4Fu;
    key ^= key >> 29, key *= 0xBF58476D1CE4E5B9u, key ^= key >> 32;
    *normal = m->normal + (key & (m->n - 1)) * m->link->d;
    return &m->pair[key & (m->n - 1)];
}

/* The entry for (part, foe), with either of them above; NULL if there is none. */
static Pair *find(const Memory *m, int64_t part, int64_t foe, double **normal, int *above)
{
    Pair *p = place_of(m, part, foe, normal);
    *above = p->a == part + 1 && p->b == foe + 1;
    if (*above) return p;
    p = place_of(m, foe, part, normal); /* stored when the foe was the union */
    return p->a == foe + 1 && p->b == part + 1 ? p : NULL;
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
    double *w;
    int above;
    Pair *p = find(m, part, foe, &w, &above);
    if (!p) return 0;
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

const State *memory_state(const Memory *m, int64_t part, int64_t foe, int *turned)
{
    double *normal;
    int above;
    const Pair *p = find(m, part, foe, &normal, &above);
    *turned = p && p->state && !above;
    return p ? p->state : NULL;
}

int memory_solved(const Memory *m, int64_t part, int64_t foe)
{
    double *normal;
    int above;
    const Pair *p = find(m, part, foe, &normal, &above);
    return p && p->solved;
}

static void forget_state(Memory *m, Pair *p)
{
    m->state_bytes -= state_size(p->state);
    release(p->state);
    p->state = NULL;
}

void memory_keep(Memory *m, int64_t slot, const Found *f)
{
    double *normal;
    int64_t a = f->turned ? f->foe : slot, b = f->turned ? slot : f->foe;
    Pair *p = place_of(m, a, b, &normal);
    State *state = p->state;
    if (state && (p->a != a + 1 || p->b != b + 1)) state = NULL, forget_state(m, p);
    *p = (Pair){a + 1, b + 1, tail_of(m->link, a), tail_of(m->link, b), f->low, f->high, f->solved, state};
    memcpy(normal, f->normal, sizeof(double) * m->link->d);
    m->renewed[m->renewed_n++] = (Renewed){p, a + 1, b + 1, f->state};
}

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
        if (!r->state) continue;
        if (p->state) forget_state(m, p);
        p->state = r->state;
        m->state_bytes += state_size(r->state);
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
