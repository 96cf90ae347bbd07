#include "long_messages.h"

#include <string.h>

#include "../common/standard.h"

enum { TAG = 1 };
/* What a call has at most where a message is cut, and the blocks of which a type is made. */
#define PIECE ((size_t)1 << 30)
#define BLOCK ((size_t)1 << 20)

const char *const counting_names[] = {"count", "type", "pieces", NULL};

void make_type(long_message *m)
{
    MPI_Datatype block, types[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
    const size_t blocks = m->bytes / BLOCK;
    int lengths[2] = {(int)blocks, (int)(m->bytes % BLOCK)};
    MPI_Aint starts[2] = {0, (MPI_Aint)(blocks * BLOCK)};
    MPI_Type_contiguous((int)BLOCK, MPI_BYTE, &block);
    types[0] = block;
    MPI_Type_create_struct(2, lengths, starts, types, &m->all);
    MPI_Type_commit(&m->all);
    MPI_Type_free(&block);
}

/* By one element of a type that has all bytes. */

static void send_type(long_message *m)
{
    MPI_Send(m->given, 1, m->all, 1 - m->rank, TAG, MPI_COMM_WORLD);
}

static void receive_type(long_message *m)
{
    MPI_Recv(m->taken, 1, m->all, 1 - m->rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void broadcast_type(long_message *m)
{
    MPI_Bcast(m->rank == 0 ? m->given : m->taken, 1, m->all, 0, MPI_COMM_WORLD);
}

/* By as many calls as it takes; a short message is one. */

static int piece_at(const long_message *m, size_t at)
{
    return (int)(m->bytes - at < PIECE ? m->bytes - at : PIECE);
}

static void send_pieces(long_message *m)
{
    size_t at = 0;
    do {
        MPI_Send(m->given + at, piece_at(m, at), MPI_BYTE, 1 - m->rank, TAG, MPI_COMM_WORLD);
    } while ((at += PIECE) < m->bytes);
}

static void receive_pieces(long_message *m)
{
    size_t at = 0;
    do {
        MPI_Recv(m->taken + at, piece_at(m, at), MPI_BYTE, 1 - m->rank, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    } while ((at += PIECE) < m->bytes);
}

static void broadcast_pieces(long_message *m)
{
    unsigned char *message = m->rank == 0 ? m->given : m->taken;
    size_t at = 0;
    do {
        MPI_Bcast(message + at, piece_at(m, at), MPI_BYTE, 0, MPI_COMM_WORLD);
    } while ((at += PIECE) < m->bytes);
}

static void reduce_pieces(long_message *m)
{
    size_t at = 0;
    do {
        MPI_Allreduce(m->given + at, m->taken + at, piece_at(m, at), MPI_BYTE, MPI_BXOR,
                      MPI_COMM_WORLD);
    } while ((at += PIECE) < m->bytes);
}

/* By calls whose counts are as large as memory. */

#if HAS_BIG_COUNTS
static void send_count(long_message *m)
{
    MPI_Send_c(m->given, (MPI_Count)m->bytes, MPI_BYTE, 1 - m->rank, TAG, MPI_COMM_WORLD);
}

static void receive_count(long_message *m)
{
    MPI_Recv_c(m->taken, (MPI_Count)m->bytes, MPI_BYTE, 1 - m->rank, TAG, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

static void broadcast_count(long_message *m)
{
    MPI_Bcast_c(m->rank == 0 ? m->given : m->taken, (MPI_Count)m->bytes, MPI_BYTE, 0,
                MPI_COMM_WORLD);
}

static void reduce_count(long_message *m)
{
    MPI_Allreduce_c(m->given, m->taken, (MPI_Count)m->bytes, MPI_BYTE, MPI_BXOR, MPI_COMM_WORLD);
}
#else
#define send_count NULL
#define receive_count NULL
#define broadcast_count NULL
#define reduce_count NULL
#endif

static const counting all_countings[] = {
    {"count", send_count, receive_count, broadcast_count, reduce_count},
    {"type", send_type, receive_type, broadcast_type, NULL}, /* Of which MPI knows no operation. */
    {"pieces", send_pieces, receive_pieces, broadcast_pieces, reduce_pieces},
};

const counting *find_counting(const char *name)
{
    for (size_t i = 0; i < sizeof all_countings / sizeof all_countings[0]; i++)
        if (strcmp(all_countings[i].name, name) == 0)
            return &all_countings[i];
    return NULL;
}
