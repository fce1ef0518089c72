#include "planes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "linear.h"
#include "sizes.h"

enum {
    PLANES = SIZE(32, 4),  /* hyperplanes kept for two labels, at most */
    FEWEST = SIZE(4, 3),   /* and at least: more than SORTED */
    SORTED = 2,            /* the first hyperplanes of two labels are kept for good, with all points in their order */
    STRIPE = SIZE(512, 8), /* points that a thread projects at a time */
    LATE = SIZE(256, 4),   /* a larger cluster is projected on a new hyperplane only if that was found for it */
};

static const double EXTENT_BYTES = SIZE(1 << 30, 1 << 13); /* of all extents together */

/* A point and its projection. */
typedef struct {
    double value;
    int64_t point;
} Place;

/* Bounds of a cluster's projections on a hyperplane, rounded outwards. */
typedef struct {
    float low, high;
    uint32_t upto; /* the last point of the cluster that they include, plus 1; 0: they are unknown */
} Extent;

/*
 * Hyperplanes of two labels. On the sorted ones the extents of all clusters are always known. On the others an extent is computed
 * when it is needed, from the points that joined the cluster since the last time.
 */
typedef struct {
    int64_t label[2];
    int n;
    double *normal;        /* one row of d numbers for each */
    double *low, *high;    /* one row of numbers for each sorted one: a number for each point of both labels */
    Extent *extent;        /* likewise for the others */
    int64_t used[PLANES];  /* when the plane last separated a candidate */
    Place *sorted[SORTED]; /* the points of both labels, each label in ascending order */
} Pool;

struct Planes {
    const Linkage *link;
    const int64_t *foe_start, *foe;
    double clear;
    Crew *crew;
    Pool **pool; /* for each entry of foe */
    double *projection;
    int most;        /* hyperplanes of two labels */
    int64_t clock;
    int64_t *marked; /* for each slot: the candidate for which it was last listed */
};

Planes *planes_new(const Linkage *link, const int64_t *foe_start, const int64_t *foe, double clear, Crew *crew)
{
    Planes *planes = allocate_zeros(1, sizeof *planes);
    planes->link = link, planes->foe_start = foe_start, planes->foe = foe, planes->clear = clear, planes->crew = crew;
    planes->pool = allocate_zeros(foe_start[link->labels] + 1, sizeof(Pool *));
    planes->projection = allocate(link->n + 1, sizeof(double));
    planes->marked = allocate_zeros(link->n + 1, sizeof(int64_t));
    double columns = 1;
    for (int64_t label = 0; label < link->labels; label++)
        columns += (double)(foe_start[label + 1] - foe_start[label]) * (double)(link->start[label + 1] - link->start[label]);
    double room = EXTENT_BYTES / (columns * sizeof(Extent));
    planes->most = room > PLANES ? PLANES : room < FEWEST ? FEWEST : (int)room;
    return planes;
}

void planes_tick(Planes *planes) { planes->clock++; }

static int64_t entry_of(const Planes *planes, int64_t label, int64_t foe)
{
    for (int64_t e = planes->foe_start[label]; e < planes->foe_start[label + 1]; e++)
        if (planes->foe[e] == foe) return e;
    return -1;
}

static int64_t width_of(const Linkage *l, const Pool *p)
{
    return l->start[p->label[0] + 1] - l->start[p->label[0]] + l->start[p->label[1] + 1] - l->start[p->label[1]];
}

/* The index of a slot in the pool's arrays. */
static int64_t column(const Linkage *l, const Pool *p, int64_t slot)
{
    if (l->label[slot] == p->label[0]) return slot - l->start[p->label[0]];
    return l->start[p->label[0] + 1] - l->start[p->label[0]] + slot - l->start[p->label[1]];
}

/* The pool of two labels, created if missing. */
static Pool *pool_of(Planes *planes, int64_t label, int64_t foe)
{
    int64_t e = entry_of(planes, label, foe), back = entry_of(planes, foe, label);
    Pool *p = planes->pool[e];
    if (p) return p;
    p = allocate_zeros(1, sizeof *p);
    p->label[0] = label < foe ? label : foe, p->label[1] = label < foe ? foe : label;
    int64_t width = width_of(planes->link, p);
    p->normal = allocate(planes->most * planes->link->d, sizeof(double));
    p->low = allocate(SORTED * width, sizeof(double));
    p->high = allocate(SORTED * width, sizeof(double));
    p->extent = allocate((planes->most - SORTED) * width, sizeof(Extent));
    planes->pool[e] = planes->pool[back] = p;
    return p;
}

/* The index for a new hyperplane: a free one, or that of the least recently used. */
static int place_in(const Planes *planes, Pool *p)
{
    if (p->n < planes->most) return p->n++;
    int oldest = SORTED;
    for (int i = SORTED + 1; i < p->n; i++)
        if (p->used[i] < p->used[oldest]) oldest = i;
    return oldest;
}

typedef struct {
    const Linkage *link;
    int64_t from;
    int64_t n;
    const double *w;
    double *out;
} Stripe;

static void project_stripe(void *context, int64_t task, int worker)
{
    (void)worker;
    Stripe *s = context;
    int64_t from = task * STRIPE, n = s->n - from < STRIPE ? s->n - from : STRIPE;
    project(s->link->X + (s->from + from) * s->link->d, s->link->d, NULL, n, s->w, s->out + from);
}

static int by_value(const void *a, const void *b)
{
    double x = ((const Place *)a)->value, y = ((const Place *)b)->value;
    return (x > y) - (x < y);
}

/* Project all points of two labels on one of the first hyperplanes, and sort them. */
static void sort_points(Planes *planes, Pool *p, int h)
{
    const Linkage *l = planes->link;
    int64_t width = width_of(l, p), at = 0;
    double *low = p->low + h * width, *high = p->high + h * width;
    Place *sorted = p->sorted[h] = allocate(width + 1, sizeof(Place));
    for (int64_t i = 0; i < width; i++) low[i] = INFINITY, high[i] = -INFINITY;
    for (int side = 0; side < 2; side++) {
        int64_t from = l->start[p->label[side]], n = l->start[p->label[side] + 1] - from;
        Stripe stripe = {l, from, n, p->normal + h * l->d, planes->projection};
        crew_run(planes->crew, project_stripe, &stripe, (n + STRIPE - 1) / STRIPE);
        for (int64_t i = 0; i < n; i++) {
            int64_t c = at + l->owner[from + i] - from;
            low[c] = fmin(low[c], planes->projection[i]);
            high[c] = fmax(high[c], planes->projection[i]);
            sorted[at + i] = (Place){planes->projection[i], from + i};
        }
        qsort(sorted + at, (size_t)n, sizeof(Place), by_value);
        at += n;
    }
}

/* Add a hyperplane; returns its index, or -1 if the labels are never compared. */
static int add(Planes *planes, int64_t label, int64_t foe, const double *normal)
{
    const Linkage *l = planes->link;
    if (entry_of(planes, label, foe) < 0 || entry_of(planes, foe, label) < 0) return -1;
    Pool *p = pool_of(planes, label, foe);
    int h = place_in(planes, p);
    p->used[h] = planes->clock;
    memcpy(p->normal + h * l->d, normal, sizeof(double) * l->d);
    int64_t width = width_of(l, p);
    if (h < SORTED)
        sort_points(planes, p, h);
    else
        memset(p->extent + (h - SORTED) * width, 0, sizeof(Extent) * width);
    return h;
}

void planes_add(Planes *planes, int64_t label, int64_t foe, const double *normal) { add(planes, label, foe, normal); }

static float round_down(double x)
{
    float rounded = (float)x;
    return rounded <= x ? rounded : nextafterf(rounded, -INFINITY);
}

/* Store one bound of a large cluster; the other would need a scan of its points. */
static void set_extent(const Linkage *l, Pool *p, int h, int64_t slot, double low, double high)
{
    if (l->size[slot] <= LATE) return;
    Extent found = {round_down(low), -round_down(-high), (uint32_t)(l->tail[slot] + 1)};
    p->extent[(h - SORTED) * width_of(l, p) + column(l, p, slot)] = found;
}

void planes_add_found(Planes *planes, const int64_t upper[2], const int64_t lower[2], double low, double high,
                      const double *normal)
{
    const Linkage *l = planes->link;
    int64_t label = l->label[upper[0]], foe = l->label[lower[0]];
    int h = add(planes, label, foe, normal);
    if (h < SORTED) return;
    Pool *p = planes->pool[entry_of(planes, label, foe)];
    for (int i = 0; i < 2; i++) set_extent(l, p, h, upper[i], low, INFINITY), set_extent(l, p, h, lower[i], -INFINITY, high);
}

/* Include all points of a cluster in its extent; returns 0 if that is not worth the time. */
static int complete(const Linkage *l, const double *w, int64_t slot, Extent *e)
{
    int64_t tail = l->tail[slot];
    if (e->upto == tail + 1) return 1;
    if (!e->upto && l->size[slot] > LATE) return 0;
    double low = e->upto ? e->low : INFINITY, high = e->upto ? e->high : -INFINITY;
    for (int64_t i = e->upto ? l->next[e->upto - 1] : slot; i >= 0; i = l->next[i]) {
        double value = dot(l->X + i * l->d, w, l->d);
        low = value < low ? value : low, high = value > high ? value : high;
    }
    *e = (Extent){round_down(low), -round_down(-high), (uint32_t)(tail + 1)};
    return 1;
}

/* The number of values below a limit. */
static int64_t below(const Place *sorted, int64_t n, double limit)
{
    int64_t from = 0;
    while (n > 0) {
        int64_t half = n / 2;
        if (sorted[from + half].value < limit)
            from += half + 1, n -= half + 1;
        else
            n = half;
    }
    return from;
}

/*
 * The shortest run of sorted points that contains a point of every cluster of the foe label that a sorted hyperplane does not
 * separate from the union of a and b: a cluster without a point on the union's side, or within `clear` of it, is separable.
 */
static int64_t shortest_run(const Planes *planes, const Pool *p, int64_t foe, int64_t a, int64_t b, const Place **run)
{
    const Linkage *l = planes->link;
    int64_t width = width_of(l, p), ca = column(l, p, a), cb = column(l, p, b), n = l->start[foe + 1] - l->start[foe];
    int64_t first = foe == p->label[1] ? width - n : 0, shortest = n + 1;
    for (int h = 0; h < SORTED && h < p->n; h++) {
        const Place *sorted = p->sorted[h] + first;
        const double *low = p->low + h * width, *high = p->high + h * width;
        int64_t lower = below(sorted, n, nextafter(fmin(low[ca], low[cb]) - planes->clear, -INFINITY));
        int64_t upper = below(sorted, n, nextafter(fmax(high[ca], high[cb]) + planes->clear, INFINITY));
        if (n - lower < shortest) shortest = n - lower, *run = sorted + lower;
        if (upper < shortest) shortest = upper, *run = sorted;
    }
    return shortest;
}

int64_t planes_foes(Planes *planes, int64_t entry, int64_t a, int64_t b, int64_t *slots)
{
    const Linkage *l = planes->link;
    int64_t foe = planes->foe[entry], n = l->alive_n[foe], kept = 0;
    const Pool *p = planes->pool[entry];
    const Place *run = NULL;
    int64_t length = p ? shortest_run(planes, p, foe, a, b, &run) : n + 1;
    if (4 * length > 3 * n) {
        memcpy(slots, l->alive + l->start[foe], sizeof(int64_t) * n);
        return n;
    }
    for (int64_t i = 0; i < length; i++) {
        int64_t slot = l->owner[run[i].point];
        if (planes->marked[slot] != planes->clock) planes->marked[slot] = planes->clock, slots[kept++] = slot;
    }
    return kept;
}

/* Keep those of n slots that a sorted hyperplane does not separate from the union of a and b. */
static int64_t filter_sorted(const Planes *planes, Pool *p, int h, int64_t a, int64_t b, int64_t *slots, int64_t n)
{
    const Linkage *l = planes->link;
    int64_t width = width_of(l, p), ca = column(l, p, a), cb = column(l, p, b), kept = 0;
    int64_t shift = column(l, p, slots[0]) - slots[0]; /* the same for all slots of a label */
    const double *low = p->low + h * width, *high = p->high + h * width;
    double union_low = fmin(low[ca], low[cb]), union_high = fmax(high[ca], high[cb]), clear = planes->clear;
    for (int64_t i = 0; i < n; i++) {
        int64_t c = slots[i] + shift;
        int apart = (union_low - high[c] > clear) | (low[c] - union_high > clear);
        slots[kept] = slots[i];
        kept += !apart;
    }
    return kept;
}

/* The same for another hyperplane. An extent without the latest points is too small: if it does not separate, no other does. */
static int64_t filter_late(const Planes *planes, Pool *p, int h, int64_t a, int64_t b, int64_t *slots, int64_t n)
{
    const Linkage *l = planes->link;
    const double *w = p->normal + h * l->d;
    Extent *all = p->extent + (h - SORTED) * width_of(l, p), *ea = all + column(l, p, a), *eb = all + column(l, p, b);
    if (!complete(l, w, a, ea) || !complete(l, w, b, eb)) return n;
    int64_t shift = column(l, p, slots[0]) - slots[0], kept = 0;
    double below = fmin(ea->low, eb->low) - planes->clear, above = fmax(ea->high, eb->high) + planes->clear;
    for (int64_t i = 0; i < n; i++) {
        Extent *e = all + slots[i] + shift;
        int apart = (!e->upto || e->high < below || e->low > above) && complete(l, w, slots[i], e);
        apart = apart && (e->high < below || e->low > above);
        slots[kept] = slots[i];
        kept += !apart;
    }
    return kept;
}

int64_t planes_filter(Planes *planes, int64_t entry, int64_t a, int64_t b, int64_t *slots, int64_t n)
{
    Pool *p = planes->pool[entry];
    if (!p) return n;
    for (int h = 0; h < p->n && n; h++) {
        int64_t kept = (h < SORTED ? filter_sorted : filter_late)(planes, p, h, a, b, slots, n);
        if (kept < n) p->used[h] = planes->clock;
        n = kept;
    }
    return n;
}

void planes_merge(Planes *planes, int64_t slot, int64_t gone)
{
    const Linkage *l = planes->link;
    for (int64_t e = planes->foe_start[l->label[slot]]; e < planes->foe_start[l->label[slot] + 1]; e++) {
        Pool *p = planes->pool[e];
        if (!p) continue;
        int64_t width = width_of(l, p), to = column(l, p, slot), from = column(l, p, gone);
        for (int h = 0; h < SORTED && h < p->n; h++, to += width, from += width) {
            p->low[to] = fmin(p->low[to], p->low[from]);
            p->high[to] = fmax(p->high[to], p->high[from]);
        }
    }
}
