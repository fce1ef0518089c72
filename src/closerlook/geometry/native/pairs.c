/* Loops over all pairs of rows, in strips: the nearest rows, and the ranks of distances. */
#include <math.h>

#include "call.h"
#include "engine.h"
#include "linear.h"

enum { CHUNK = 16 }; /* numbers tested together; most chunks have no near row */

/* The k smallest values so far, in order; the smaller row wins a tie. */
typedef struct {
    double *value;
    int64_t *row, k, held;
} Nearest;

static double farthest(const Nearest *near) { return near->held < near->k ? INFINITY : near->value[near->k - 1]; }

static void offer(Nearest *near, double value, int64_t row)
{
    if (near->held == near->k) {
        int64_t last = near->k - 1;
        if (value > near->value[last] || (value == near->value[last] && row > near->row[last])) return;
        near->held--;
    }
    int64_t at = near->held++;
    for (; at > 0 && (near->value[at - 1] > value || (near->value[at - 1] == value && near->row[at - 1] > row)); at--)
        near->value[at] = near->value[at - 1], near->row[at] = near->row[at - 1];
    near->value[at] = value, near->row[at] = row;
}

/* Whether any of n numbers is at most the limit. */
static int any_within(const float *v, int64_t n, float limit)
{
    int found = 0;
    if (n < CHUNK)
        for (int64_t c = 0; c < n; c++) found |= v[c] <= limit;
    else
        for (int c = 0; c < CHUNK; c++) found |= v[c] <= limit;
    return found;
}

static float upwards(double value) { return nextafterf((float)value, INFINITY); }

typedef struct {
    const double *X, *length;
    const float *about;
    int64_t n, d, first, rows, k, *row;
    double unit, *squared;
} Strip;

/* The k nearest rows of row i of a strip; see engine.h. */
static void nearest_of_row(const Strip *s, int64_t i)
{
    int64_t n = s->n, d = s->d, k = s->k, self = s->first + i;
    const float *v = s->about + i * n;
    const double *x = s->X + self * d;
    Nearest near = {s->squared + i * k, s->row + i * k, k, 0};
    float limit = INFINITY;
    for (int64_t j = 0; j < n; j += CHUNK) {
        int64_t end = j + CHUNK < n ? j + CHUNK : n;
        if (!any_within(v + j, end - j, limit)) continue;
        for (int64_t l = j; l < end; l++)
            if (l != self) offer(&near, v[l], l);
        limit = (float)farthest(&near);
    }
    double reach = 0; /* an upper bound of the k-th squared distance */
    for (int64_t l = 0; l < k; l++) {
        double square = squared_distance(x, s->X + near.row[l] * d, d);
        if (square > reach) reach = square;
    }
    double own = s->length[self], both = 2 * own + sqrt(reach);
    limit = upwards(reach - own * own + s->unit * both * both + 1e-30);
    near.held = 0;
    for (int64_t j = 0; j < n; j += CHUNK) {
        int64_t end = j + CHUNK < n ? j + CHUNK : n;
        if (!any_within(v + j, end - j, limit)) continue;
        for (int64_t l = j; l < end; l++)
            if (v[l] <= limit && l != self) offer(&near, squared_distance(x, s->X + l * d, d), l);
    }
}

static void nearest_of_rows(void *arguments)
{
    const Strip *s = arguments;
    for (int64_t i = 0; i < s->rows; i++) check_stop(), nearest_of_row(s, i);
}

Status nearest_in_strip(const double *X, int64_t n, int64_t d, const double *length, const float *about, int64_t first,
                        int64_t rows, int64_t k, double unit, int64_t *row, double *squared)
{
    Strip strip = {X, length, about, n, d, first, rows, k, row, unit, squared};
    return call_single(nearest_of_rows, &strip);
}

/*
 * The level of a distance; distance * scale is below 1. Each of the OCTAVES below 1 has 2^FINE levels, so that one row far
 * from all others does not push them into few levels; smaller distances are at level 0. A level with an index in `places` is
 * divided by the next FINER bits; these levels come after all others. Levels are bits of the number, which sort as the number
 * does; NaN is at the last level.
 */
static int64_t level(double distance, double scale, const int64_t *places)
{
    union { double value; int64_t bits; } share = {distance * scale};
    if (!(share.value < 1)) return ((int64_t)OCTAVES << FINE) - 1;
    int64_t found = (share.bits >> (52 - FINE)) - ((int64_t)(1023 - OCTAVES) << FINE);
    if (found <= 0) return 0;
    if (!places || places[found] < 0) return found;
    int64_t inner = (share.bits >> (52 - FINE - FINER)) & ((1 << FINER) - 1);
    return ((int64_t)OCTAVES << FINE) + (places[found] << FINER) + inner;
}

typedef struct {
    const double *distance;
    int64_t rows, columns;
    double scale;
    const int64_t *places;
    int64_t *counts;
} Census;

static void count_rows(void *arguments)
{
    const Census *c = arguments;
    for (int64_t i = 0; i < c->rows; i++) {
        check_stop();
        const double *distance = c->distance + i * c->columns;
        for (int64_t j = i + 1; j < c->columns; j++) c->counts[level(distance[j], c->scale, c->places)]++;
    }
}

Status count_levels(const double *distance, int64_t rows, int64_t columns, double scale, const int64_t *places,
                    int64_t *counts)
{
    Census census = {distance, rows, columns, scale, places, counts};
    return call_single(count_rows, &census);
}

typedef struct {
    const double *distance[2], *rank[2];
    const int64_t *places[2];
    double scale[2], total;
    int64_t rows, columns;
} Products;

static void add_products(void *arguments)
{
    Products *p = arguments;
    for (int64_t i = 0; i < p->rows; i++) {
        check_stop();
        const double *a = p->distance[0] + i * p->columns, *b = p->distance[1] + i * p->columns;
        double sum = 0;
        for (int64_t j = i + 1; j < p->columns; j++)
            sum += p->rank[0][level(a[j], p->scale[0], p->places[0])] * p->rank[1][level(b[j], p->scale[1], p->places[1])];
        p->total += sum;
    }
}

Status rank_products(const double *a, const double *b, int64_t rows, int64_t columns, double scale_a, double scale_b,
                     const int64_t *places_a, const int64_t *places_b, const double *rank_a, const double *rank_b,
                     double *total)
{
    Products products = {{a, b}, {rank_a, rank_b}, {places_a, places_b}, {scale_a, scale_b}, 0, rows, columns};
    Status status = call_single(add_products, &products);
    *total = products.total;
    return status;
}
