/* EP: pairs of Gaussian random numbers by acceptance and rejection (RNR-94-007, section 2.2). No
 * messages but three sums at the end: what the processors do alone. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "benchmark.h"
#include "for_this_processor.h"
#include "random_numbers.h"

/* Ranks share the pairs in batches, and a rank works in pieces that stay in the cache. */
enum { LOG2_BATCH = 16, PAIRS_OF_A_PIECE = 1024, LANES = 8 };

static const option options[] = {CLASS_OPTION, REPETITION_OPTION};
static const program_description program = {
    "nas_ep",
    "nas_ep: EP of the NAS Parallel Benchmarks, with NPB's summary lines.\n"
    "Any number of ranks, up to one for each 65536 pairs.\n",
    "mpiexec -n 4 nas_ep --class A", options, sizeof options / sizeof options[0]};

typedef struct {
    double sum_x, sum_y;
    long long counts[EP_ANNULI];
} tally;

/* The natural logarithm of a number from 2^-1000 to 1, so that the compiler can work on several at
 * once: 2 atanh(s) as its series, whose next term is below 1e-17. */
PART_OF_IT double logarithm(double t)
{
    const uint64_t half_root = UINT64_C(0x3fe6a09e667f3bcd); /* Square root of 1/2. */
    uint64_t bits;
    memcpy(&bits, &t, sizeof bits);
    /* The exponent plus 1024, so that it is never negative. */
    uint64_t exponent = (bits - half_root + (UINT64_C(1024) << 52)) >> 52;
    uint64_t mantissa = bits - (exponent << 52) + (UINT64_C(1024) << 52);
    /* 2^52 + exponent, since that has the exponent in its lowest bits. */
    uint64_t exponent_bits = exponent | UINT64_C(0x4330000000000000);
    double m, e;
    memcpy(&m, &mantissa, sizeof m);
    memcpy(&e, &exponent_bits, sizeof e);
    e -= 0x1p52 + 1024.0;
    const double s = (m - 1.0) / (m + 1.0), z = s * s;
    double series = 1.0 / 21;
    series = series * z + 1.0 / 19;
    series = series * z + 1.0 / 17;
    series = series * z + 1.0 / 15;
    series = series * z + 1.0 / 13;
    series = series * z + 1.0 / 11;
    series = series * z + 1.0 / 9;
    series = series * z + 1.0 / 7;
    series = series * z + 1.0 / 5;
    series = series * z + 1.0 / 3;
    return 2.0 * s * (1.0 + z * series) + e * 0.69314718055994530942;
}

/* Uniform numbers from -1 to 1, two of a pair behind each other; `lanes` are the states. */
PART_OF_IT void draw(uint64_t lanes[LANES], uint64_t jump, double numbers[2 * PAIRS_OF_A_PIECE])
{
    for (int i = 0; i < 2 * PAIRS_OF_A_PIECE; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            numbers[i + lane] = (double)(int64_t)lanes[lane] * 0x1p-45 - 1.0;
            lanes[lane] = random_product(lanes[lane], jump);
        }
}

/* Keep the pairs in the unit circle; return how many, filled up to whole lanes with zeros. */
PART_OF_IT int accept(const double numbers[2 * PAIRS_OF_A_PIECE], double *x, double *y, double *t)
{
    int kept = 0;
    for (int i = 0; i < PAIRS_OF_A_PIECE; i++) {
        const double a = numbers[2 * i], b = numbers[2 * i + 1], square = a * a + b * b;
        x[kept] = a;
        y[kept] = b;
        t[kept] = square;
        kept += square <= 1.0;
    }
    for (int i = kept; i < kept + LANES; i++) {
        x[i] = y[i] = 0.0;
        t[i] = 1.0;
    }
    return kept;
}

FOR_THIS_PROCESSOR
static void add_batch(uint64_t first, tally *sums)
{
    static double numbers[2 * PAIRS_OF_A_PIECE];
    static double x[PAIRS_OF_A_PIECE + LANES], y[PAIRS_OF_A_PIECE + LANES],
        t[PAIRS_OF_A_PIECE + LANES];
    const uint64_t jump = random_jump(LANES);
    uint64_t lanes[LANES];
    double sums_x[LANES] = {0.0}, sums_y[LANES] = {0.0};
    for (int lane = 0; lane < LANES; lane++)
        lanes[lane] = first = next_random(first);
    for (int piece = 0; piece < (1 << LOG2_BATCH); piece += PAIRS_OF_A_PIECE) {
        draw(lanes, jump, numbers);
        const int kept = accept(numbers, x, y, t), filled = (kept + LANES - 1) / LANES * LANES;
        for (int i = 0; i < filled; i++) {
            const double factor = sqrt(-2.0 * logarithm(t[i]) / t[i]);
            x[i] *= factor;
            y[i] *= factor;
        }
        for (int i = 0; i < filled; i += LANES)
            for (int lane = 0; lane < LANES; lane++) {
                sums_x[lane] += x[i + lane];
                sums_y[lane] += y[i + lane];
            }
        /* A pair's larger number is below 12: 46 bits have no smaller square than 2^-92. */
        for (int i = 0; i < kept; i++) {
            const double a = fabs(x[i]), b = fabs(y[i]);
            const int annulus = (int)(a > b ? a : b);
            sums->counts[annulus < EP_ANNULI ? annulus : EP_ANNULI - 1]++;
        }
    }
    for (int lane = 0; lane < LANES; lane++) {
        sums->sum_x += sums_x[lane];
        sums->sum_y += sums_y[lane];
    }
}

typedef struct {
    const ep_reference *reference;
    long long batches;
    int rank, ranks;
    tally all;
} generator;

static void generate(void *solver)
{
    generator *g = solver;
    tally mine = {0};
    for (long long batch = first_of_part(g->batches, g->ranks, g->rank);
         batch < first_of_part(g->batches, g->ranks, g->rank + 1); batch++)
        add_batch(random_after(RANDOM_SEED_OF_EP, (uint64_t)batch << (LOG2_BATCH + 1)), &mine);
    double sums[2] = {mine.sum_x, mine.sum_y}, all_sums[2] = {0.0, 0.0};
    MPI_Allreduce(sums, all_sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(mine.counts, g->all.counts, EP_ANNULI, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    g->all.sum_x = all_sums[0];
    g->all.sum_y = all_sums[1];
}

static void verify(void *solver, verification *v)
{
    const generator *g = solver;
    const ep_reference *reference = g->reference;
    const tally *found = &g->all;
    if (g->rank != 0)
        return;
    verify_real(v, "the sum of X", found->sum_x, reference->sum_x, ep_tolerance);
    verify_real(v, "the sum of Y", found->sum_y, reference->sum_y, ep_tolerance);
    if (!reference->gaussian_pairs)
        return;
    long long pairs = 0;
    char what[64];
    for (int i = 0; i < EP_ANNULI; i++) {
        snprintf(what, sizeof what, "the number of pairs in annulus %d", i);
        verify_whole(v, what, found->counts[i], reference->counts[i]);
        pairs += found->counts[i];
    }
    verify_whole(v, "the number of Gaussian pairs", pairs, reference->gaussian_pairs);
}

int main(int argc, char **argv)
{
    begin_benchmark(&program, "EP", &argc, &argv);
    const ep_reference *reference = &ep_references[class_index()];
    generator g = {.reference = reference,
                   .batches = 1LL << (reference->log2_pairs - LOG2_BATCH)};
    MPI_Comm_rank(MPI_COMM_WORLD, &g.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g.ranks);
    if (g.ranks > g.batches) {
        complaint about;
        complain(&about, "%d ranks for the %lld batches of class %s: at most one rank per batch",
                 g.ranks, g.batches, chosen_class);
        leave_together(program.name, about.text, EXIT_USAGE);
    }
    tally untimed = {0};
    add_batch(RANDOM_SEED_OF_EP, &untimed); /* So that code and memory are there. */
    const timed_part part = {.section = generate, .verify = verify};
    section_times times;
    verification verified = {0};
    time_section(&part, &g, &times, &verified);
    const double numbers = 2.0 * (double)(1LL << reference->log2_pairs);
    const run_summary summary = {.benchmark = "EP", .size = {(long long)numbers},
                                 .operations = numbers,
                                 .operation_type = "Random numbers generated"};
    end_benchmark(&program, &summary, &times, &verified);
}
