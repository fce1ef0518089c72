/*
 * What the solver does when it stalls: the factor is computed anew, and the weights get more digits.
 *
 * The nearest points of two hulls at a distance of 1e-6 are differences of numbers near 1. In float64 their difference w keeps
 * ten digits, and so does the direction of w. The distance itself needs the square of that. Here w and the weights are
 * double-double numbers; the factor stays in float64 and only corrects the weights, so each turn adds digits.
 */
#include <math.h>
#include <string.h>

#include "active.h"
#include "digits.h"
#include "factor.h"
#include "linear.h"

enum { TURNS = 24 };

/* Move the origin to the middle of the two weighted points, so that the rows are as short as possible. */
static void centre(Solver *s)
{
    memset(s->origin, 0, sizeof(double) * s->d);
    for (int64_t i = 0; i < s->k; i++) add_scaled(s->origin, 0.5 * s->weight[i], s->X + s->place[i] * s->d, s->d);
    s->lift = 0;
    for (int64_t i = 0; i < s->k; i++)
        s->lift = fmax(s->lift, squared_distance(s->X + s->place[i] * s->d, s->origin, s->d));
    if (!(s->lift > 0)) s->lift = 1;
}

/* Scale the weights of a side so that they sum to 1. */
static void normalise(Solver *s, signed char side)
{
    double sum = 0;
    for (int64_t i = 0; i < s->k; i++) sum += s->side[i] == side ? s->weight[i] : 0;
    for (int64_t i = 0; i < s->k; i++)
        if (s->side[i] == side) s->weight[i] /= sum;
}

/* Let the heaviest old points of a side that are left enter, with their weights in x; returns 0 if there are none. */
static int enter_heaviest(Solver *s, int64_t n, signed char side)
{
    int64_t coming[COMING], at[COMING];
    int m = 0;
    for (; m < COMING; m++) {
        int64_t next = -1;
        for (int64_t i = 0; i < n; i++)
            if (s->old_place[i] >= 0 && s->old_side[i] == side && (next < 0 || s->x[i] > s->x[next])) next = i;
        if (next < 0) break;
        coming[m] = s->old_place[next], at[m] = next;
        s->old_place[next] = -1;
    }
    int64_t before = s->k;
    active_enter(s, coming, m, side);
    for (int64_t i = before, j = 0; i < s->k; i++, j++) { /* a point that did not enter is left out */
        while (coming[j] != s->place[i]) j++;
        s->weight[i] = s->x[at[j]];
    }
    return m;
}

void active_rebuild(Solver *s)
{
    int64_t n = s->k;
    centre(s);
    memcpy(s->old_place, s->place, sizeof(int64_t) * n);
    memcpy(s->old_side, s->side, (size_t)n);
    memcpy(s->x, s->weight, sizeof(double) * n);
    s->k = 0;
    for (int left[2] = {1, 1}; left[0] || left[1];) /* the heaviest first: a point that depends on others is a light one */
        for (int i = 0; i < 2; i++) {
            check_stop();
            left[i] = enter_heaviest(s, n, i ? -1 : 1);
        }
    normalise(s, 1), normalise(s, -1);
}

/* w = sum of side * (x + x_low) * row, from the rows of X themselves: a common origin cancels */
static double combine(Solver *s)
{
    memset(s->w, 0, sizeof(double) * s->d);
    memset(s->w_low, 0, sizeof(double) * s->d);
    for (int64_t i = 0; i < s->k; i++) {
        Digits weight = {s->side[i] * s->x[i], s->side[i] * s->x_low[i]};
        digits_add_scaled(s->w, s->w_low, weight, s->X + s->place[i] * s->d, s->d);
    }
    return digits_square(s->w, s->w_low, s->d);
}

/*
 * Project the active points on w, and write to z how far each is from the weighted mean of its side; returns the largest.
 * missing: what the weights of each side lack to 1.
 */
static double residuals(Solver *s, double missing[2])
{
    Digits mean[2] = {{0, 0}, {0, 0}}, sum[2] = {{-1, 0}, {-1, 0}};
    for (int64_t i = 0; i < s->k; i++) {
        int of_b = s->side[i] < 0;
        Digits t = digits_dot(s->X + s->place[i] * s->d, s->w, s->w_low, s->d);
        s->t[i] = t.high, s->t_low[i] = t.low;
        mean[of_b] = digits_add(mean[of_b], digits_scale(t, s->x[i]));
        sum[of_b] = digits_add(sum[of_b], (Digits){s->x[i], s->x_low[i]});
    }
    double worst = 0;
    for (int64_t i = 0; i < s->k; i++) {
        Digits m = mean[s->side[i] < 0];
        s->z[i] = s->side[i] * digits_round(digits_add(m, (Digits){-s->t[i], -s->t_low[i]}));
        worst = fmax(worst, fabs(s->z[i]));
    }
    missing[0] = -digits_round(sum[0]), missing[1] = -digits_round(sum[1]);
    return worst;
}

double active_refine_precisely(Solver *s, double tolerance)
{
    double last = INFINITY, square = 0, missing[2];
    memset(s->x_low, 0, sizeof(double) * s->k);
    for (int turn = 0; turn < TURNS; turn++) {
        check_stop();
        int64_t k = s->k;
        square = combine(s);
        double worst = residuals(s, missing);
        if (turn && (worst <= tolerance * square || worst > 0.5 * last || turn == TURNS - 1)) break;
        last = turn ? worst : INFINITY; /* at first the weights do not sum to 1 */
        factor_forward(s->R, s->cap, k, s->z);
        double la, lb;
        active_multipliers(s, missing[0] - dot(s->ya, s->z, k), missing[1] - dot(s->yb, s->z, k), &la, &lb);
        for (int64_t i = 0; i < k; i++) s->z[i] += la * s->ya[i] + lb * s->yb[i];
        factor_backward(s->R, s->cap, k, s->z);
        for (int64_t i = 0; i < k; i++) {
            Digits x = digits_add((Digits){s->x[i], s->x_low[i]}, (Digits){s->z[i], 0});
            s->x[i] = x.high, s->x_low[i] = x.low;
        }
    }
    return square;
}
