#include "cores.h"

#include <string.h>

#include "samples.h"
#include "sizes.h"

enum { TRIALS = SIZE(64, 4) }; /* comparisons with cores before their success matters */

/* Clusters with their stamps; an entry whose stamp has changed is dropped. */
typedef struct {
    int64_t n, room;
    uint32_t *slot, *stamp;
} List;

struct Cores {
    const Linkage *link;
    const int64_t *foe_start, *foe;
    int64_t *region;        /* for each slot */
    signed char *kind;      /* for each slot */
    int64_t *start, *point; /* points of each core */
    double *mean;           /* one row of d numbers for each core */
    int64_t words;          /* of a set of labels */
    uint64_t *apart, *met;  /* for each slot, sets of labels; the last row is that of the candidate */
    List *open;             /* for each entry of foe */
    List *others;           /* for each label */
    int64_t tried, succeeded;
};

static int has(const uint64_t *set, int64_t label) { return (int)(set[label / 64] >> (label % 64) & 1); }
static void include(uint64_t *set, int64_t label) { set[label / 64] |= (uint64_t)1 << (label % 64); }

static void append(List *list, const Linkage *l, int64_t slot)
{
    if (list->n == list->room) {
        list->room = 2 * list->room + 16;
        list->slot = reallocate(list->slot, list->room, sizeof(uint32_t));
        list->stamp = reallocate(list->stamp, list->room, sizeof(uint32_t));
    }
    list->slot[list->n] = (uint32_t)slot, list->stamp[list->n++] = l->stamp[slot];
}

/* Write the present entries to `slots`, and drop the others; label: drop those that are separable from its core, too; -1: none. */
static int64_t present(const Cores *c, List *list, int64_t label, int64_t *slots)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < list->n; i++) {
        int64_t slot = list->slot[i];
        if (c->link->stamp[slot] != list->stamp[i] || (label >= 0 && has(c->apart + slot * c->words, label))) continue;
        list->slot[kept] = list->slot[i], list->stamp[kept] = list->stamp[i];
        slots[kept++] = slot;
    }
    return list->n = kept;
}

/* Enter a cluster that is not inside its label's core into the lists. */
static void announce(Cores *c, int64_t slot)
{
    int64_t label = c->link->label[slot];
    append(&c->others[label], c->link, slot);
    for (int64_t e = c->foe_start[label]; e < c->foe_start[label + 1]; e++) {
        int64_t other = c->foe[e];
        if (cores_is_apart(c, slot, other)) continue;
        for (int64_t back = c->foe_start[other]; back < c->foe_start[other + 1]; back++)
            if (c->foe[back] == label) append(&c->open[back], c->link, slot);
    }
}

static void find_means(Cores *c)
{
    const Linkage *l = c->link;
    for (int64_t label = 0; label < l->labels; label++) {
        double *mean = c->mean + label * l->d;
        int64_t n = c->start[label + 1] - c->start[label];
        for (int64_t i = c->start[label]; i < c->start[label + 1]; i++)
            for (int64_t j = 0; j < l->d; j++) mean[j] += l->X[c->point[i] * l->d + j];
        for (int64_t j = 0; j < l->d && n; j++) mean[j] /= (double)n;
    }
}

Cores *cores_new(const Linkage *link, const int64_t *region, const int64_t *foe_start, const int64_t *foe)
{
    Cores *c = allocate_zeros(1, sizeof *c);
    int64_t n = link->n, held = 0;
    c->link = link, c->foe_start = foe_start, c->foe = foe, c->words = (link->labels + 63) / 64;
    c->region = allocate(n + 1, sizeof(int64_t));
    c->kind = allocate(n + 1, 1);
    c->start = allocate(link->labels + 1, sizeof(int64_t));
    c->point = allocate(n + 1, sizeof(int64_t));
    c->mean = allocate_zeros(link->labels * link->d, sizeof(double));
    c->apart = allocate_zeros((n + 1) * c->words, sizeof(uint64_t));
    c->met = allocate_zeros((n + 1) * c->words, sizeof(uint64_t));
    c->open = allocate_zeros(foe_start[link->labels] + 1, sizeof(List));
    c->others = allocate_zeros(link->labels + 1, sizeof(List));
    memcpy(c->region, region, sizeof(int64_t) * n);
    int64_t *inside = allocate(n + 1, sizeof(int64_t));
    for (int64_t label = 0; label < link->labels; label++) {
        c->start[label] = held;
        for (int64_t i = link->start[label]; i < link->start[label + 1]; i++) {
            c->kind[i] = region[i] == label ? CORE : OUTSIDE;
            if (region[i] == label) inside[held++] = i;
        }
        samples_write(inside + c->start[label], held - c->start[label], c->point + c->start[label]);
    }
    c->start[link->labels] = held;
    release(inside);
    find_means(c);
    for (int64_t i = 0; i < n; i++)
        if (c->kind[i] != CORE) announce(c, i);
    return c;
}

int64_t cores_size(const Cores *c, int64_t label) { return c->start[label + 1] - c->start[label]; }

const int64_t *cores_points(const Cores *c, int64_t label, int64_t *n, const double **mean)
{
    *n = cores_size(c, label), *mean = c->mean + label * c->link->d;
    return c->point + c->start[label];
}

int cores_kind(const Cores *c, int64_t slot) { return c->kind[slot]; }
int cores_kind_of_union(const Cores *c, int64_t a, int64_t b) { return c->kind[a] == c->kind[b] ? c->kind[a] : MIXED; }
int64_t cores_region(const Cores *c, int64_t a, int64_t b) { return c->region[a] == c->region[b] ? c->region[a] : -1; }

int cores_elsewhere(const Cores *c, int64_t region, int64_t slot)
{
    return region >= 0 && c->region[slot] >= 0 && c->region[slot] != region;
}

int cores_is_apart(const Cores *c, int64_t slot, int64_t label)
{
    return cores_elsewhere(c, label, slot) || has(c->apart + slot * c->words, label);
}

int cores_is_met(const Cores *c, int64_t slot, int64_t label) { return has(c->met + slot * c->words, label); }
void cores_set_apart(Cores *c, int64_t slot, int64_t label) { include(c->apart + slot * c->words, label); }
void cores_set_met(Cores *c, int64_t slot, int64_t label) { include(c->met + slot * c->words, label); }

int64_t cores_open(Cores *c, int64_t label, int64_t entry, int64_t *slots)
{
    return present(c, &c->open[entry], label, slots);
}

int64_t cores_others(Cores *c, int64_t label, int64_t *slots) { return present(c, &c->others[label], -1, slots); }

void cores_begin(Cores *c)
{
    memset(c->apart + c->link->n * c->words, 0, sizeof(uint64_t) * c->words);
    memset(c->met + c->link->n * c->words, 0, sizeof(uint64_t) * c->words);
}

void cores_union_apart(Cores *c, int64_t label) { cores_set_apart(c, c->link->n, label); }
void cores_union_met(Cores *c, int64_t label) { cores_set_met(c, c->link->n, label); }

void cores_merge(Cores *c, int64_t slot, int64_t gone)
{
    const uint64_t *apart = c->apart + c->link->n * c->words, *met = c->met + c->link->n * c->words;
    c->kind[slot] = (signed char)cores_kind_of_union(c, slot, gone);
    c->region[slot] = cores_region(c, slot, gone);
    for (int64_t i = 0; i < c->words; i++) {
        c->apart[slot * c->words + i] = apart[i];
        c->met[slot * c->words + i] |= c->met[gone * c->words + i] | met[i];
    }
    if (c->kind[slot] != CORE) announce(c, slot);
}

int cores_useful(const Cores *c) { return c->tried < TRIALS || 2 * c->succeeded > c->tried; }
void cores_count(Cores *c, int succeeded) { c->tried++, c->succeeded += succeeded; }
