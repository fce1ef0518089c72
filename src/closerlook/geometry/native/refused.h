/* Pairs of clusters whose merge was blocked. */
#ifndef CLOSERLOOK_REFUSED_H
#define CLOSERLOOK_REFUSED_H

#include <stdint.h>

typedef struct Refused Refused;

/* A blocked pair stays blocked when its clusters grow; if `forgets`, it may be tried again as soon as one of them grows. */
Refused *refused_new(int64_t slots, int forgets);
int refused_forgets(const Refused *refused);
int refused_has(const Refused *refused, int64_t a, int64_t b);
void refused_add(Refused *refused, int64_t a, int64_t b);

/* The cluster of slot `gone` became part of the cluster of another slot. */
void refused_merge(Refused *refused, int64_t slot, int64_t gone);

#endif
