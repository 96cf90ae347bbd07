/* The problems of each class and the values that verify them, as data: reference_values.c. */
#ifndef WYEAST_REFERENCE_VALUES_H
#define WYEAST_REFERENCE_VALUES_H

/* S, W, A, B, C, D, E; of DT, whose larger classes have no published values, the first four. */
enum { CLASSES = 7, DT_CLASSES = 4 };

enum { EP_ANNULI = 10, IS_TEST_KEYS = 5, IS_ITERATIONS = 10, FT_MOST_ITERATIONS = 25 };

typedef struct {
    int log2_pairs;
    double sum_x, sum_y;
    long long gaussian_pairs, counts[EP_ANNULI]; /* 0 where NPB has the sums alone. */
} ep_reference;

typedef struct {
    int log2_keys, log2_largest_key, log2_buckets;
    long long test_index[IS_TEST_KEYS], test_rank[IS_TEST_KEYS];
    /* In iteration i a test key's rank is test_rank + sign * (i + offset). */
    int sign[IS_TEST_KEYS], offset[IS_TEST_KEYS];
    /* From each of these iterations on it is one lower; 0: from none. */
    int lower_from[IS_TEST_KEYS][2];
} is_reference;

typedef struct {
    int order, nonzeros, iterations;
    double shift, zeta;
} cg_reference;

typedef struct {
    int points, iterations; /* Points in each of the three dimensions. */
    double smoother[4], residual;
} mg_reference;

typedef struct {
    int points[3], iterations;
    double checksum[FT_MOST_ITERATIONS][2]; /* Real and imaginary part. */
} ft_reference;

typedef struct {
    int points[3], iterations;
    double time_step;
    double residual[5], error[5]; /* Root mean squares, of each unknown. */
    double integral;              /* LU's; 0 for the others. */
} flow_reference;

/* The graphs of DT, in the order of their checksums. */
enum { BLACK_HOLE, WHITE_HOLE, SHUFFLE, DT_GRAPHS };

typedef struct {
    int samples, deviation, sources; /* Of a stream of features; how many streams there are. */
    double checksum[DT_GRAPHS];
} dt_reference;

extern const ep_reference ep_references[CLASSES];
extern const is_reference is_references[CLASSES];
extern const cg_reference cg_references[CLASSES];
extern const mg_reference mg_references[CLASSES];
extern const ft_reference ft_references[CLASSES];
extern const flow_reference lu_references[CLASSES], sp_references[CLASSES];
extern const flow_reference bt_references[CLASSES];
extern const dt_reference dt_references[DT_CLASSES];
extern const double ep_tolerance, cg_tolerance, mg_tolerance, ft_tolerance;
extern const double lu_tolerance, sp_tolerance, bt_tolerance;

/* What a wrong value is said to differ from. */
extern const char reference_source[];

#endif
