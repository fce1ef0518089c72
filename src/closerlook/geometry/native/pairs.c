/* Loops over all pairs of rows, a strip of them at a time: the nearest rows, and the ranks of distances. */
#include "linear.h"

#include <math.h>

enum { CHUNK = 16 }; /* numbers looked at together; most chunks hold nothing near */

/* The k smallest so far, in order; of equal values, the smaller row comes first. */
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

/* Whether one of some numbers is at most the limit. */
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

/*
 * The k nearest of n rows to each of `rows` rows from `first` on, itself apart, and their squared distances, exact from
 * differences in X. about: (rows, n) the same in single precision, less the row's own squared length: a first choice.
 * Whatever lies within the error of that choice is measured, so that the answer does not depend on it: the error is at
 * most unit * (|x| + |y|)^2, and a row y that is nearer than r to x is no longer than |x| + r.
 */
void nearest_in_strip(const double *X, int64_t n, int64_t d, const double *length, const float *about, int64_t first,
                      int64_t rows, int64_t k, double unit, int64_t *row, double *squared)
{
    for (int64_t i = 0; i < rows; i++) {
        const float *v = about + i * n;
        const double *x = X + (first + i) * d;
        Nearest near = {squared + i * k, row + i * k, k, 0};
        float limit = INFINITY;
        for (int64_t j = 0; j < n; j += CHUNK) {
            int64_t end = j + CHUNK < n ? j + CHUNK : n;
            if (!any_within(v + j, end - j, limit)) continue;
            for (int64_t l = j; l < end; l++)
                if (l != first + i) offer(&near, v[l], l);
            limit = (float)farthest(&near);
        }
        double reach = 0; /* no less than the k-th squared distance */
        for (int64_t l = 0; l < k; l++) {
            double s = squared_distance(x, X + near.row[l] * d, d);
            if (s > reach) reach = s;
        }
        double own = length[first + i], both = 2 * own + sqrt(reach);
        limit = upwards(reach - own * own + unit * both * both + 1e-30);
        near.held = 0;
        for (int64_t j = 0; j < n; j += CHUNK) {
            int64_t end = j + CHUNK < n ? j + CHUNK : n;
            if (!any_within(v + j, end - j, limit)) continue;
            for (int64_t l = j; l < end; l++)
                if (v[l] <= limit && l != first + i) offer(&near, squared_distance(x, X + l * d, d), l);
        }
    }
}

enum { FINE = 14, OCTAVES = 24, FINER = 12 };

/*
 * Level of a distance, which times the scale is below 1: 2^FINE levels in each of the OCTAVES below 1, so that one row
 * far from all others does not throw these into few levels; what is nearer still is at level 0. A level with a place is
 * divided by the next FINER bits, into levels behind all others. Both go by the bits of the number, which order as it
 * does; what is no number is at the last level.
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

/*
 * How many distances lie at each level: (rows, columns), of rows to themselves and all later ones, so that the pairs are
 * those above the diagonal. places: of divided levels, or NULL; counts: one for each level.
 */
void count_levels(const double *distance, int64_t rows, int64_t columns, double scale, const int64_t *places,
                  int64_t *counts)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i + 1; j < columns; j++) counts[level(distance[i * columns + j], scale, places)]++;
}

/* The sum over the same pairs of the product of two ranks, each by its level. */
double rank_products(const double *a, const double *b, int64_t rows, int64_t columns, double scale_a, double scale_b,
                     const int64_t *places_a, const int64_t *places_b, const double *rank_a, const double *rank_b)
{
    double total = 0;
    for (int64_t i = 0; i < rows; i++) {
        const double *p = a + i * columns, *q = b + i * columns;
        double sum = 0;
        for (int64_t j = i + 1; j < columns; j++)
            sum += rank_a[level(p[j], scale_a, places_a)] * rank_b[level(q[j], scale_b, places_b)];
        total += sum;
    }
    return total;
}
