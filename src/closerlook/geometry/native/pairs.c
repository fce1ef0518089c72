/* Loops over all pairs of rows, in strips: the nearest rows, and the ranks of distances. */
#include "linear.h"

#include <math.h>

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

/*
 * The k nearest of n rows for each of `rows` rows from `first` on, without the row itself, and their squared distances from
 * differences in X. about: (rows, n) squared distances in single precision, minus the row's own squared length, used to choose
 * candidates. Every row within the error of that choice is computed exactly, so the result does not depend on it: the error
 * is at most unit * (|x| + |y|)^2, and a row y nearer than r to x is no longer than |x| + r.
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
        double reach = 0; /* an upper bound of the k-th squared distance */
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

/*
 * Count the distances at each level. distance: (rows, columns), of rows to themselves and all later ones, so the pairs are
 * those above the diagonal. places: indices of divided levels, or NULL; counts: one for each level.
 */
void count_levels(const double *distance, int64_t rows, int64_t columns, double scale, const int64_t *places,
                  int64_t *counts)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i + 1; j < columns; j++) counts[level(distance[i * columns + j], scale, places)]++;
}

/* The sum over the same pairs of the product of their ranks in two spaces; ranks: by level. */
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
