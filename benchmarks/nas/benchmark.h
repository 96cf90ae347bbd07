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
#define CLASS_OPTION                                                                               \
    {.name = "class", .kind = OPTION_CHOICE, .value = &chosen_class, .initial = "S",               \
     .names = class_names, .help = "the size of the problem, as NPB defines it"}

/* The place of the chosen class in the tables of reference_values.h. */
size_t class_index(void);

/* Begin the program and say what is solved. Every rank calls it. */
void begin_benchmark(const program_description *program, const char *benchmark, int *argc,
                     char ***argv);

/* Touched memory for so many things; where there is none the program ends. */
void *reserve(const program_description *program, size_t count, size_t bytes);

/* Wait for all ranks and return the time in seconds. */
double begin_timing(void);

/* The seconds since then, of the rank that took longest; on rank 0. */
double end_timing(double began);

/* The part of n things that part number `which` of `parts` has: its first one, for which = parts
 * the end. */
long long first_of_part(long long n, int parts, int which);

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

typedef struct {
    const char *benchmark; /* Two capital letters. */
    long long size[3];     /* Of the problem; one number or three, as NPB prints it. */
    int iterations;
    double seconds;
    double operations; /* By NPB's count, in all. */
    const char *operation_type;
} run_summary;

/* Print the summary and leave, with exit code 1 where the answer is wrong. Every rank calls it;
 * what rank 0 has counts. */
void end_benchmark(const program_description *program, const run_summary *summary,
                   const verification *verified) __attribute__((noreturn));

#endif
