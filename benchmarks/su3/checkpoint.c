#include "checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER = 512, LINKS_OF_SITE = DIMENSIONS * MATRIX, TAG = 77 };

/* The links follow in the order of the sites, x first, as numbers of the file's precision. */
static const char *const layout =
    "wyeast su3 checkpoint 1\nlattice %d %d %d %d\nbeta %a\nseed %08x%08x\nnumber %zu %s\n"
    "trajectory %llu\nchecksum %016llx\n";

static void write_header(char *header, const simulation *s, unsigned long long trajectory,
                         unsigned long long checksum)
{
    const int *n = s->field->geometry->whole;
    const int one = 1;
    memset(header, ' ', HEADER);
    const int used = snprintf(header, HEADER, layout, n[0], n[1], n[2], n[3], s->beta,
                              s->key.word[1], s->key.word[0], s->kernels->number_bytes,
                              *(const char *)&one ? "little" : "big", trajectory, checksum);
    header[used] = ' ';
    header[HEADER - 1] = '\n';
}

/* The sum of the sites' own sums, so that the order does not matter: FNV-1a of each. */
static unsigned long long checksum_of_site(long long number, const void *bytes, size_t count)
{
    const unsigned char *b = bytes;
    unsigned long long sum = 0xcbf29ce484222325ULL ^ (unsigned long long)number;
    for (size_t i = 0; i < count; i++)
        sum = (sum ^ b[i]) * 0x100000001b3ULL;
    return sum;
}

/* The sites of one plane of one rank. A message is one row of them, whose bytes an int holds however
 * long the sides are; those of a plane it may not. */
typedef struct {
    const geometry *g;
    size_t site_bytes, row_bytes;
    char *sites;
} slab;

static int make_slab(slab *b, const simulation *s)
{
    b->g = s->field->geometry;
    b->site_bytes = LINKS_OF_SITE * s->kernels->number_bytes;
    b->row_bytes = b->site_bytes * (size_t)b->g->own[0];
    b->sites = malloc(b->row_bytes * (size_t)b->g->own[1]);
    int failed = !b->sites, any;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return any;
}

/* Copy between the links of a plane and the slab, and add the slab's checksum. */
static void convert(slab *b, simulation *s, int z, int t, int to_field, unsigned long long *sum)
{
    char *at = b->sites;
    for (int y = 1; y <= b->g->own[1]; y++)
        for (int x = 1; x <= b->g->own[0]; x++, at += b->site_bytes) {
            const int site[DIMENSIONS] = {x, y, z, t}, own[DIMENSIONS] = {x - 1, y - 1, z - 1,
                                                                         t - 1};
            for (int mu = 0; mu < DIMENSIONS; mu++) {
                double link[MATRIX];
                float single[MATRIX];
                if (s->kernels->number_bytes == sizeof(double)) {
                    char *from = at + (size_t)mu * sizeof link;
                    if (to_field)
                        memcpy(link, from, sizeof link);
                    else
                        get_link(s->field, site, mu, link);
                    memcpy(from, link, sizeof link);
                } else {
                    char *from = at + (size_t)mu * sizeof single;
                    if (!to_field)
                        get_link(s->field, site, mu, link);
                    else
                        memcpy(single, from, sizeof single);
                    for (int c = 0; c < MATRIX; c++)
                        if (to_field)
                            link[c] = (double)single[c];
                        else
                            single[c] = (float)link[c];
                    memcpy(from, single, sizeof single);
                }
                if (to_field)
                    set_link(s->field, site, mu, link);
            }
            *sum += checksum_of_site(site_number(b->g, own), at, b->site_bytes);
        }
}

/* Write or read a slab's rows at their places; returns 0 or -1 with errno. */
static int file_slab(const slab *b, int file, int rank, int z, int t, int reading)
{
    geometry theirs = *b->g;
    place_of_rank(b->g, rank, theirs.place);
    const size_t row = b->row_bytes;
    for (int y = 0; y < b->g->own[1]; y++) {
        const int own[DIMENSIONS] = {0, y, z - 1, t - 1};
        off_t at = (off_t)HEADER + (off_t)b->site_bytes * (off_t)site_number(&theirs, own);
        char *sites = b->sites + (size_t)y * row;
        for (size_t done = 0; done < row;) {
            const ssize_t n = reading ? pread(file, sites + done, row - done, at)
                                      : pwrite(file, sites + done, row - done, at);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0) {
                errno = n == 0 ? EIO : errno;
                return -1;
            }
            done += (size_t)n;
            at += n;
        }
    }
    return 0;
}

static void send_slab(const slab *b, int to)
{
    for (size_t y = 0; y < (size_t)b->g->own[1]; y++)
        MPI_Send(b->sites + y * b->row_bytes, (int)b->row_bytes, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
}

static void receive_slab(const slab *b, int from)
{
    for (size_t y = 0; y < (size_t)b->g->own[1]; y++)
        MPI_Recv(b->sites + y * b->row_bytes, (int)b->row_bytes, MPI_BYTE, from, TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Move all slabs between the ranks and rank 0's file. Returns 0, or rank 0's errno there. */
static int move_slabs(simulation *s, slab *b, int file, int reading, unsigned long long *checksum)
{
    const geometry *g = b->g;
    unsigned long long sum = 0;
    int failed = 0;
    for (int rank = 0; rank < g->ranks; rank++)
        for (int t = 1; t <= g->own[3]; t++)
            for (int z = 1; z <= g->own[2]; z++) {
                if (!reading && rank == g->rank) {
                    convert(b, s, z, t, 0, &sum);
                    if (rank)
                        send_slab(b, 0);
                }
                if (g->rank == 0) {
                    if (!reading && rank)
                        receive_slab(b, rank);
                    if (!failed && file_slab(b, file, rank, z, t, reading))
                        failed = errno;
                    if (reading && rank)
                        send_slab(b, rank);
                }
                if (reading && rank == g->rank) {
                    if (rank)
                        receive_slab(b, 0);
                    convert(b, s, z, t, 1, &sum);
                }
            }
    MPI_Allreduce(&sum, checksum, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
    return failed;
}

/* Let all ranks have rank 0's sentence, if it has one. */
static int agree(int failed, complaint *about)
{
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (failed)
        MPI_Bcast(about->text, (int)sizeof about->text, MPI_CHAR, 0, MPI_COMM_WORLD);
    return failed ? -1 : 0;
}

int write_checkpoint(simulation *s, const char *path, complaint *about)
{
    const int root = s->field->geometry->rank == 0;
    const size_t length = strlen(path) + sizeof ".part";
    char header[HEADER], *aside = malloc(length);
    slab b;
    unsigned long long checksum;
    int file = -1, failed = 0;
    if (make_slab(&b, s) || !aside) {
        free(aside);
        return complain(about, "--checkpoint: no memory");
    }
    snprintf(aside, length, "%s.part", path);
    if (root) {
        file = open(aside, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        failed = file < 0;
        if (failed)
            complain(about, "--checkpoint %.200s: cannot be written: %s", path, strerror(errno));
    }
    if (agree(failed, about) == 0) {
        int error = move_slabs(s, &b, file, 0, &checksum);
        if (root) {
            write_header(header, s, s->trajectory, checksum);
            if (!error && (pwrite(file, header, HEADER, 0) != HEADER || fsync(file)))
                error = errno;
            if (close(file) && !error)
                error = errno;
            if (!error && rename(aside, path))
                error = errno;
            if (error) {
                unlink(aside);
                complain(about, "--checkpoint %.200s: cannot be written: %s", path,
                         strerror(error));
            }
        }
        failed = agree(error != 0, about) != 0;
    } else {
        failed = 1;
    }
    free(b.sites);
    free(aside);
    return failed ? -1 : 0;
}

/* Compare the file's header with the request. Returns 0, or -1 with a sentence. */
static int check_header(const simulation *s, int file, const char *path,
                        unsigned long long *trajectory, unsigned long long *checksum,
                        complaint *about)
{
    char header[HEADER + 1] = "", own[HEADER], order[8] = "";
    const geometry *g = s->field->geometry;
    int n[DIMENSIONS];
    double beta;
    unsigned int seed[2];
    size_t bytes;
    struct stat facts;
    if (pread(file, header, HEADER, 0) != HEADER ||
        strncmp(header, layout, strcspn(layout, "\n") + 1) != 0 ||
        sscanf(header, "%*s %*s %*s %*s lattice %d %d %d %d beta %lf seed %8x%8x number %zu %7s "
                       "trajectory %llu checksum %16llx",
               &n[0], &n[1], &n[2], &n[3], &beta, &seed[1], &seed[0], &bytes, order, trajectory,
               checksum) != 11)
        return complain(about, "--restart %.200s: not a checkpoint of su3", path);
    if (memcmp(n, g->whole, sizeof n) != 0)
        return complain(about, "--restart %.200s: its lattice is %dx%dx%dx%d", path, n[0], n[1],
                        n[2], n[3]);
    if (beta != s->beta)
        return complain(about, "--restart %.200s: its beta is %.9g", path, beta);
    if (seed[0] != s->key.word[0] || seed[1] != s->key.word[1])
        return complain(about, "--restart %.200s: its seed is %llu", path,
                        (unsigned long long)seed[1] << 32 | seed[0]);
    if (bytes != s->kernels->number_bytes)
        return complain(about, "--restart %.200s: its precision is %s", path,
                        bytes == sizeof(double) ? "double" : "single");
    write_header(own, s, *trajectory, *checksum);
    if (memcmp(own, header, HEADER) != 0)
        return complain(about, "--restart %.200s: its header is damaged, or its numbers are "
                               "%s-endian", path, order);
    const off_t right = (off_t)HEADER + (off_t)g->volume * LINKS_OF_SITE * (off_t)bytes;
    if (fstat(file, &facts) || facts.st_size != right)
        return complain(about, "--restart %.200s: has %lld bytes, and a whole one has %lld: it is "
                               "truncated or damaged",
                        path, (long long)facts.st_size, (long long)right);
    return 0;
}

int read_checkpoint(simulation *s, const char *path, complaint *about)
{
    const int root = s->field->geometry->rank == 0;
    unsigned long long facts[2] = {0, 0}, checksum;
    slab b;
    int file = -1, failed = 0;
    if (make_slab(&b, s))
        return complain(about, "--restart: no memory");
    if (root) {
        file = open(path, O_RDONLY);
        if (file < 0)
            failed = complain(about, "--restart %.200s: %s", path, strerror(errno));
        else
            failed = check_header(s, file, path, &facts[0], &facts[1], about);
    }
    if (agree(failed != 0, about) == 0) {
        const int error = move_slabs(s, &b, file, 1, &checksum);
        if (root && error)
            failed = complain(about, "--restart %.200s: %s", path, strerror(error));
        else if (root && checksum != facts[1])
            failed = complain(about, "--restart %.200s: its checksum is wrong: it is damaged",
                              path);
        failed = agree(failed != 0, about);
    } else {
        failed = 1;
    }
    if (root && file >= 0)
        close(file);
    free(b.sites);
    MPI_Bcast(facts, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    s->trajectory = facts[0];
    return failed ? -1 : 0;
}
