/* The nearest rows of each row, from squared distances that have rounding errors. */
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
    const int64_t *which;
    int64_t n, d, rows, k, *row;
    double unit, *squared;
} Strip;

/* The k nearest rows of row i of a strip; see engine.h. */
static void nearest_of_row(const Strip *s, int64_t i)
{
    int64_t n = s->n, d = s->d, k = s->k, self = s->which[i];
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

Status nearest_in_strip(const double *X, int64_t n, int64_t d, const double *length, const float *about,
                        const int64_t *which, int64_t rows, int64_t k, double unit, int64_t *row, double *squared)
{
    Strip strip = {X, length, about, which, n, d, rows, k, row, unit, squared};
    return call_single(nearest_of_rows, &strip);
}

/* ---- lists of candidates ---- */

typedef struct {
    const double *block;
    int64_t rows, columns, first, column, room, *row;
    double *value, *limit;
} Offers;

/* Put `other` into the list of a row; its value is below the row's limit. */
static void list(const Offers *o, int64_t self, double value, int64_t other)
{
    double *values = o->value + self * o->room;
    int64_t *rows = o->row + self * o->room, at = o->room - 1;
    for (; at > 0 && values[at - 1] > value; at--) values[at] = values[at - 1], rows[at] = rows[at - 1];
    values[at] = value, rows[at] = other;
    o->limit[self] = values[o->room - 1];
}

typedef double TwoDoubles __attribute__((vector_size(16), aligned(8), may_alias));
typedef int64_t TwoTruths __attribute__((vector_size(16)));

/* Whether any of CHUNK numbers is below one of its two limits; compilers do not find these vectors by themselves. */
static int any_below(const double *v, double limit, const double *limits)
{
    TwoDoubles own = {limit, limit};
    TwoTruths found = {0, 0};
    for (int c = 0; c < CHUNK; c += 2) {
        TwoDoubles value = *(const TwoDoubles *)(v + c);
        found |= (value < own) | (value < *(const TwoDoubles *)(limits + c));
    }
    return (found[0] | found[1]) != 0;
}

static void offer_all(void *arguments)
{
    const Offers *o = arguments;
    for (int64_t i = 0; i < o->rows; i++) {
        check_stop();
        const double *v = o->block + i * o->columns;
        int64_t self = o->first + i, j = self + 1 - o->column;
        for (j = j > 0 ? j : 0; j < o->columns;) {
            int64_t end = j + CHUNK;
            if (end > o->columns)
                end = o->columns;
            else if (!any_below(v + j, o->limit[self], o->limit + o->column + j)) {
                j = end;
                continue;
            }
            for (; j < end; j++) {
                int64_t other = o->column + j;
                if (v[j] < o->limit[self]) list(o, self, v[j], other);
                if (v[j] < o->limit[other]) list(o, other, v[j], self);
            }
        }
    }
}

Status offer_pairs(const double *block, int64_t rows, int64_t columns, int64_t first, int64_t column, int64_t room,
                   double *value, int64_t *row, double *limit)
{
    Offers offers = {block, rows, columns, first, column, room, row, value, limit};
    return call_single(offer_all, &offers);
}

typedef struct {
    const double *X, *length, *value;
    const int64_t *listed;
    const signed char *counted;
    int64_t n, d, room, k, *row;
    double unit, *squared;
    signed char *settled;
} Lists;

static void settle_row(const Lists *l, int64_t i)
{
    int64_t d = l->d, k = l->k;
    Nearest near = {l->squared + i * k, l->row + i * k, k, 0};
    for (int64_t c = 0; c < l->room; c++) {
        int64_t other = l->listed[i * l->room + c];
        if (other >= 0 && l->counted[other]) offer(&near, squared_distance(l->X + i * d, l->X + other * d, d), other);
    }
    if (near.held < k) return;
    double reach = near.value[k - 1], both = 2 * l->length[i] + sqrt(reach);
    l->settled[i] = l->value[(i + 1) * l->room - 1] > reach + l->unit * both * both + 1e-300;
}

static void settle_rows(void *arguments)
{
    const Lists *l = arguments;
    for (int64_t i = 0; i < l->n; i++) {
        check_stop();
        if (l->counted[i]) settle_row(l, i);
    }
}

Status settle_nearest(const double *X, int64_t n, int64_t d, const double *length, const double *value, const int64_t *listed,
                      int64_t room, const signed char *counted, int64_t k, double unit, int64_t *row, double *squared,
                      signed char *settled)
{
    Lists lists = {X, length, value, listed, counted, n, d, room, k, row, unit, squared, settled};
    return call_single(settle_rows, &lists);
}
