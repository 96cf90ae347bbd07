#include "streams.h"

#include <stdint.h>
#include <string.h>

#include "random_numbers.h"

/* Their last letter's code is part of every length: NASA's program has 'S' for all classes. */
enum { LETTER = 'S' };

/* The fields' multiplicative generators: each begins with a power of its base. */
static const int bases[FIELDS] = {2, 2, 2, 5}, moduli[FIELDS] = {421, 419, 1427, 3527};

/* A product cut to a signed integer of 32 bits. */
static int64_t cut_product(int64_t a, int64_t b)
{
    const int64_t low = (a * b) & INT64_C(0xffffffff);
    return low >= INT64_C(0x80000000) ? low - INT64_C(0x100000000) : low;
}

/* base^exponent modulo something, in integers of 32 bits: where a product is cut it may be negative, and
 * then so is the remainder. */
static int power_modulo(int base, long long exponent, int modulus)
{
    int64_t square = base, result = 1;
    if (exponent == 0)
        return 1;
    for (; exponent > 1;) {
        if (exponent % 2 == 0) {
            square = cut_product(square, square) % modulus;
            exponent /= 2;
        } else {
            result = cut_product(result, square) % modulus;
            exponent--;
        }
    }
    return (int)(cut_product(result, square) % modulus);
}

size_t longest_stream(const dt_reference *reference)
{
    return FIELDS * (size_t)(reference->samples + reference->deviation);
}

/* The points of a source's stream: their mean less the deviation and up to twice it more. */
static int points_of_source(const dt_reference *reference, int node)
{
    const int odd = 2 * node + 1;
    const int reciprocal = (int)(1.0 / uniform(random_product(RANDOM_SEED, (uint64_t)odd)));
    const int more = power_modulo(reciprocal * LETTER, odd, 2 * reference->deviation);
    return reference->samples - reference->deviation + (more < 0 ? -more : more);
}

void draw_stream(const dt_reference *reference, int node, stream *drawn)
{
    drawn->length = FIELDS * points_of_source(reference, node);
    const long long exponent = (long long)drawn->length * (node + 1) % 3141592;
    int states[FIELDS];
    for (int field = 0; field < FIELDS; field++)
        states[field] = power_modulo(bases[field], exponent, moduli[field]);
    for (int i = 0; i < drawn->length; i += FIELDS)
        for (int field = 0; field < FIELDS; field++) {
            states[field] = states[field] * bases[field] % moduli[field];
            drawn->values[i + field] = states[field];
        }
}

void clear_stream(const dt_reference *reference, stream *cleared)
{
    cleared->length = FIELDS * reference->samples;
    memset(cleared->values, 0, (size_t)cleared->length * sizeof *cleared->values);
}

/* Make a stream longer, by less than twice: halves of each number are put at its place and the one
 * before, but for the first and the last number, which stay the first and the last. */
static void stretch(stream *one, int length, double **room)
{
    double *stretched = *room;
    const double *values = one->values;
    memset(stretched, 0, (size_t)length * sizeof *stretched);
    for (int i = 1; i < one->length - 1; i++) {
        stretched[i - 1] += values[i] / 2;
        stretched[i] += values[i] / 2;
    }
    stretched[0] = values[0];
    stretched[length - 1] = values[one->length - 1];
    *room = one->values;
    *one = (stream){length, stretched};
}

/* The squared distance of two points. */
static double distance(const double *one, const double *other)
{
    double sum = 0.0;
    for (int field = 0; field < FIELDS; field++)
        sum += (one[field] - other[field]) * (one[field] - other[field]);
    return sum;
}

void filter_stream(stream *one, stream *other, double **room, int node)
{
    const double weight = (node + 1.0) / (node + 2.0);
    if (one->length < other->length)
        stretch(one, other->length, room);
    if (one->length > other->length)
        stretch(other, one->length, room);
    for (int i = FIELDS; i < one->length - FIELDS; i += FIELDS) {
        /* Of the point itself, the next and the one before, the one at which they differ least. */
        int nearest = i;
        double least = distance(one->values + i, other->values + i);
        for (int step = FIELDS; step >= -FIELDS; step -= 2 * FIELDS) {
            const double there = distance(one->values + i + step, other->values + i + step);
            if (there < least) {
                least = there;
                nearest = i + step;
            }
        }
        for (int field = 0; field < FIELDS; field++)
            one->values[i + field] = weight * other->values[nearest + field];
    }
}

void share_stream(stream *filtered, int streams)
{
    for (int i = 0; i < filtered->length; i++)
        filtered->values[i] = (int)filtered->values[i] / streams;
}

long long strength_of(const stream *received, int weight)
{
    double sum = 0.0;
    for (int i = 0; i < received->length; i++)
        sum += received->values[i] * received->values[i] / received->length;
    return (long long)(weight * sum);
}
