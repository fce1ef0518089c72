/*
 * SIZE(normal, small): the size of a cache, or a threshold. Tests also compile the engine with -DSMALL_SIZES, so that small inputs
 * fill the caches and pass the thresholds. No result depends on a size.
 */
#ifndef CLOSERLOOK_SIZES_H
#define CLOSERLOOK_SIZES_H

#ifdef SMALL_SIZES
#define SIZE(normal, small) (small)
#else
#define SIZE(normal, small) (normal)
#endif

#endif
