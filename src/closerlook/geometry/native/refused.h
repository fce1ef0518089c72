/* Pairs of clusters whose merge was blocked. A blocked pair stays blocked when its clusters grow. */
#ifndef CLOSERLOOK_REFUSED_H
#define CLOSERLOOK_REFUSED_H

#include <stdint.h>

typedef struct Refused Refused;

Refused *refused_new(int64_t slots);
int refused_has(const Refused *refused, int64_t a, int64_t b);
void refused_add(Refused *refused, int64_t a, int64_t b);

/* The cluster of slot `gone` became part of the cluster of another slot. */
void refused_merge(Refused *refused, int64_t slot, int64_t gone);

#endif
