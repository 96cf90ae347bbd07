#include "shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../common/clock.h"
#include "../common/leaving.h"

#define NAME "/dev/shm/wyeast-echo-XXXXXX"
/* No processor of today shares a longer piece of memory between two of its caches. */
#define FARTHEST_LINE 256
/* A page of the largest usual size: messages begin with one. */
#define PAGE 65536
/* Before a rank that waits lets another run: longer than an answer takes that is on its way. */
#define SPINS 20000
/* Between two looks at the clock of a rank that lets others run. */
#define YIELDS 1000

#if ATOMIC_INT_LOCK_FREE != 2
#error "an atomic unsigned int must work between processes, so without a lock"
#endif


struct shared_region {
    unsigned char *memory;
    size_t mapped, largest;
    unsigned sent, received; /* Messages of this rank. */
};

/* At the beginning of the memory, one of each sender on a line of its own, so that no rank's write
 * disturbs the other: the number of the last message that stands there. */
static atomic_uint *ready_of(const shared_region *region, int sender)
{
    return (atomic_uint *)(void *)(region->memory + (size_t)sender * FARTHEST_LINE);
}

static unsigned char *message_of(const shared_region *region, int sender)
{
    return region->memory + PAGE + (size_t)sender * region->largest;
}

/* Create the file and give it its memory now: what is not there would end the program when it is
 * written. Returns an errno, or 0 with the name and an open descriptor. */
static int create_file(char *name, size_t bytes, int *descriptor)
{
    *descriptor = mkstemp(name);
    if (*descriptor < 0)
        return errno;
    return posix_fallocate(*descriptor, 0, (off_t)bytes);
}

/* Rank 0 creates the file and rank 1 opens it. Returns a descriptor on both ranks, or -1. */
static int open_together(int rank, size_t bytes, complaint *about)
{
    struct {
        char name[sizeof NAME];
        int reason;
    } created = {NAME, 0};
    int descriptor = -1, reason = 0;
    if (rank == 0)
        created.reason = create_file(created.name, bytes, &descriptor);
    MPI_Bcast(&created, (int)sizeof created, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 1 && !created.reason) {
        descriptor = open(created.name, O_RDWR);
        reason = descriptor < 0 ? errno : 0;
    }
    MPI_Bcast(&reason, 1, MPI_INT, 1, MPI_COMM_WORLD);
    /* Both have it open or will never have it, so that nothing is left behind by whatever happens. */
    if (rank == 0 && descriptor >= 0)
        unlink(created.name);
    if (!created.reason && !reason)
        return descriptor;
    if (descriptor >= 0)
        close(descriptor);
    if (created.reason)
        return complain(about, "memory: no %zu bytes of /dev/shm on rank 0's node: %s", bytes,
                        strerror(created.reason));
    if (reason == ENOENT)
        return complain(about, "memory: the ranks do not share /dev/shm, as in two containers "
                               "that have one each");
    return complain(about, "memory: rank 1 cannot open rank 0's file in /dev/shm: %s",
                    strerror(reason));
}

shared_region *share_memory(size_t largest, complaint *about)
{
    int rank, failed, any;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const size_t rounded = (largest + PAGE - 1) / PAGE * PAGE, bytes = PAGE + 2 * rounded;
    int descriptor = open_together(rank, bytes, about);
    if (descriptor < 0)
        return NULL;
    shared_region *region = calloc(1, sizeof *region);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    failed = !region || memory == MAP_FAILED;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any) {
        if (memory != MAP_FAILED)
            munmap(memory, bytes);
        free(region);
        complain(about, "memory: %zu bytes cannot be mapped", bytes);
        return NULL;
    }
    *region = (shared_region){memory, bytes, rounded, 0, 0};
    for (int sender = 0; rank == 0 && sender < 2; sender++)
        atomic_init(ready_of(region, sender), 0);
    /* Each touches what it writes, so that it is near its processor and no page fault is timed. */
    memset(message_of(region, rank), 0, rounded);
    MPI_Barrier(MPI_COMM_WORLD);
    return region;
}

void unmap_memory(shared_region *region)
{
    if (!region)
        return;
    munmap(region->memory, region->mapped);
    free(region);
}

static void send_copy(const partner *with, const unsigned char *buffer)
{
    shared_region *region = with->region;
    memcpy(message_of(region, with->rank), buffer, with->bytes);
    atomic_store_explicit(ready_of(region, with->rank), ++region->sent, memory_order_release);
}

/* The message before was copied out, or this one would not have been sent: so an echo needs no
 * word that the memory may be written again. */
static void receive_copy(const partner *with)
{
    shared_region *region = with->region;
    atomic_uint *ready = ready_of(region, 1 - with->rank);
    const unsigned wanted = ++region->received;
    double waiting_since = 0.0;
    for (unsigned long tries = 1;
         atomic_load_explicit(ready, memory_order_acquire) != wanted; tries++) {
        if (tries < SPINS)
            continue;
        sched_yield();
        if (tries % YIELDS)
            continue;
        if (waiting_since == 0.0)
            waiting_since = seconds_now();
        else if (seconds_now() - waiting_since > LONGEST_SILENCE_S) {
            complaint about;
            complain(&about, "memory, %zu bytes: rank %d has heard nothing for too long",
                     with->bytes, with->rank);
            leave_at_once("echo", about.text);
        }
    }
    memcpy(with->receive, message_of(region, 1 - with->rank), with->bytes);
}

void echo_shared_memory(void *context)
{
    const partner *with = context;
    if (with->rank == 0) {
        send_copy(with, with->send);
        receive_copy(with);
    } else {
        receive_copy(with);
        send_copy(with, with->receive);
    }
}
