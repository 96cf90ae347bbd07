/* A number for each function that is counted, by the tables. */
#ifndef WYEAST_PROFILE_CALL_NAMES_H
#define WYEAST_PROFILE_CALL_NAMES_H

#include "interface.h"

/* Expand `one` for each of a table's functions; a collective has up to three. */
#define CALL(name, parameters, arguments, before, after) ONE(name)
#if HAS_MPI4
#define COLLECTIVE(name, non_blocking_name, parameters, arguments, gives) \
    ONE(name) ONE(non_blocking_name) ONE(name##_init)
#elif HAS_MPI3
#define COLLECTIVE(name, non_blocking_name, parameters, arguments, gives) \
    ONE(name) ONE(non_blocking_name)
#else
#define COLLECTIVE(name, non_blocking_name, parameters, arguments, gives) ONE(name)
#endif

typedef enum {
#define ONE(name) CALL_##name,
#include "calls_with_counts.h"
#include "calls_without_counts.h"
#undef ONE
#if HAS_LARGE_COUNTS
#define ONE(name) CALL_##name##_c,
#include "calls_with_counts.h"
#undef ONE
#endif
    CALL_COUNT
} call_id;

#if defined WYEAST_PROFILE_NAMES
static const char *const call_names[CALL_COUNT] = {
#define ONE(name) "MPI_" #name,
#include "calls_with_counts.h"
#include "calls_without_counts.h"
#undef ONE
#if HAS_LARGE_COUNTS
#define ONE(name) "MPI_" #name "_c",
#include "calls_with_counts.h"
#undef ONE
#endif
};
#endif

#undef CALL
#undef COLLECTIVE
#endif
