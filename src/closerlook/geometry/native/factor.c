#include "factor.h"

#include <math.h>
#include <string.h>

#include "linear.h"

#define REAL double
#define NAMED(name) name
#define SQUARE_ROOT sqrt
#include "factor_reals.h"
#undef REAL
#undef NAMED
#undef SQUARE_ROOT

#define REAL float
#define NAMED(name) name##_single
#define SQUARE_ROOT sqrtf
#include "factor_reals.h"
