/* What the NAS Parallel Benchmarks have in common: their classes, how an answer is verified, and the
 * summary lines that NPB's own programs print. */
#ifndef WYEAST_BENCHMARK_H
#define WYEAST_BENCHMARK_H

#include <stddef.h>

#include "../common/leaving.h"
#include "../common/options.h"
#include "reference_values.h"

/* The row of a program's table of options for the class. */
extern const char *chosen_class;
extern const char *const class_names[];
#define CLASS_OPTION_OF(known)                                                                     \
    {.name = "class", .kind = OPTION_CHOICE, .value = &chosen_class, .initial = "S",               \
     .names = (known), .help = "the size of the problem, as NPB defines it"}
#define CLASS_OPTION CLASS_OPTION_OF(class_names)

/* The row for how long the timed section is repeated: NPB has it once, which in small classes is one
 * time of milliseconds, at the mercy of a single interruption. */
extern double least_seconds;
#define REPETITION_OPTION                                                                          \
    {.name = "least-seconds", .kind = OPTION_FRACTION, .value = &least_seconds, .initial = "0",    \
     .most = 3600, .help = "repeat the timed section until it has taken this long in all, an odd " \
                           "number of times and at most 99; the median counts"}

/* The place of the chosen class in the tables of reference_values.h. */
size_t class_index(void);

/* Begin the program and say what is solved. Every rank calls it. */
void begin_benchmark(const program_description *program, const char *benchmark, int *argc,
                     char ***argv);

/* What this rank is about to ask for: bytes of memory at least, and how many elements it counts for
 * MPI at most in one call. */
typedef struct {
    double bytes, most_counted;
} demand;

/* End the program with a sentence, before anything is reserved, where the ranks of a host ask for more
 * memory than that may give, or a rank counts more than an int of MPI holds. Every rank calls it. */
void refuse_too_much(const program_description *program, demand own);

/* Touched memory for so many things; where there is none the program ends. */
void *reserve(const program_description *program, size_t count, size_t bytes);

/* The same for what is large and gone through at random, or by itself: on huge pages. Several arrays that a
 * loop goes through side by side would meet in the same lines of the cache. */
void *reserve_huge(const program_description *program, size_t count, size_t bytes);

/* The part of n things that part number `which` of `parts` has: its first one, for which = parts
 * the end. */
static inline long long first_of_part(long long n, int parts, int which)
{
    return n / parts * which + n % parts * which / parts;
}

typedef struct {
    int compared, failed;
    complaint first; /* What is wrong, if anything is. */
} verification;

/* Compare what was found with what it must be; NaN is wrong. On rank 0. */
void verify_real(verification *v, const char *what, double found, double expected,
                 double tolerance);
/* Complex numbers by the modulus of their difference. */
void verify_complex(verification *v, const char *what, const double found[2],
                    const double expected[2], double tolerance);
void verify_whole(verification *v, const char *what, long long found, long long expected);

/* What a benchmark does each time, on all ranks; `solver` is its own. */
typedef struct {
    void (*prepare)(void *solver); /* Untimed: restore what the section changes; may be NULL. */
    void (*section)(void *solver); /* Timed, from a barrier to the end of the last rank. */
    void (*verify)(void *solver, verification *v); /* Untimed; what rank 0 compares counts. */
} timed_part;

enum { MOST_TIMES = 99 };
typedef struct {
    int count;
    double seconds[MOST_TIMES]; /* On rank 0, in the order measured, by the slowest rank. */
} section_times;

/* Run the timed section once, or as often as --least-seconds asks, and verify each time. */
void time_section(const timed_part *part, void *solver, section_times *times, verification *v);

typedef struct {
    const char *benchmark; /* Two capital letters; of DT also those of its graph. */
    long long size[3];     /* Of the problem; one number or three, as NPB prints it. */
    int iterations;
    double operations; /* By NPB's count, in all. */
    const char *operation_type;
} run_summary;

/* Print the summary with the median of the times and leave, with exit code 1 where an answer is
 * wrong. Every rank calls it; what rank 0 has counts. */
void end_benchmark(const program_description *program, const run_summary *summary,
                   const section_times *times, const verification *verified)
    __attribute__((noreturn));

#endif
