/* The wrappers of the tables' functions: each counts its calls, their time and their bytes, and calls
 * the function by its other name, PMPI_. */
#include "communicators.h"
#include "counters.h"
#include "requests.h"

static uint64_t bytes_of(uint64_t count, MPI_Datatype type)
{
    if (!count || type == MPI_DATATYPE_NULL)
        return 0;
#if HAS_MPI3
    MPI_Count size = 0;
    PMPI_Type_size_x(type, &size);
#else
    int size = 0;
    PMPI_Type_size(type, &size);
#endif
    return size > 0 ? count * (uint64_t)size : 0;
}

static void sent(counters *own, call_id call, uint64_t bytes, int to, MPI_Comm comm)
{
    if (to == MPI_PROC_NULL)
        return;
    count_message(own, call, bytes);
    count_flow(own, SENT_TO, KIND_MESSAGE, world_rank(group_of_communicator(comm), to), bytes);
}

static void count_received(counters *own, call_id call, flow_kind kind, int peer, uint64_t bytes)
{
    own->calls[call].received_messages++;
    own->calls[call].received_bytes += bytes;
    count_flow(own, RECEIVED_FROM, kind, peer, bytes);
}

static void received(counters *own, call_id call, const group_of_ranks *group, MPI_Status *status)
{
    int from = status->MPI_SOURCE, was_cancelled = 0;
    /* No message: from nobody, or of a persistent request that was not started. */
    if (from == MPI_PROC_NULL || from == MPI_ANY_SOURCE)
        return;
    PMPI_Test_cancelled(status, &was_cancelled);
    if (was_cancelled)
        return;
    /* As bytes, since the type of a receive that is under way may be freed. */
#if HAS_MPI3
    MPI_Count bytes = 0;
    PMPI_Get_elements_x(status, MPI_BYTE, &bytes);
#else
    int bytes = 0;
    PMPI_Get_count(status, MPI_BYTE, &bytes);
#endif
    if (bytes < 0) {
        own->unseen_receives++;
        return;
    }
    count_received(own, call, KIND_MESSAGE, world_rank(group, from), (uint64_t)bytes);
}

static void note(counters *own, uintptr_t handle, awaited_kind kind, group_of_ranks *group, int peer,
                 uint64_t bytes)
{
    awaited one = {.handle = handle, .kind = kind, .group = keep_group(group), .peer = peer,
                   .bytes = bytes};
    if (!note_awaited(one))
        own->unseen_receives++;
}

static void completed(counters *own, call_id call, MPI_Request was, MPI_Status *status)
{
    awaited found;
    if (was == MPI_REQUEST_NULL || !complete_awaited((uintptr_t)was, &found))
        return;
    if (found.kind == AWAITS_RECEIVE || found.kind == AWAITS_RECEPTION)
        received(own, call, found.group, status);
    if (found.kind == AWAITS_RECEIVE)
        release_group(found.group);
    if (found.kind == AWAITS_PARTITIONS && mark_started((uintptr_t)was, false))
        count_received(own, call, KIND_MESSAGE, found.peer, found.bytes);
}

static void started(counters *own, call_id call, MPI_Request request)
{
    awaited found;
    if (!complete_awaited((uintptr_t)request, &found))
        return;
    if (found.kind == AWAITS_SEND || found.kind == AWAITS_COLLECTIVE)
        count_message(own, call, found.bytes);
    if (found.kind == AWAITS_SEND)
        count_flow(own, SENT_TO, KIND_MESSAGE, found.peer, found.bytes);
    if (found.kind == AWAITS_PARTITIONS)
        mark_started((uintptr_t)request, true);
}

static MPI_Request *copy_requests(counters *own, int count, const MPI_Request *requests)
{
    if (!make_room(own, count)) {
        own->unseen_receives++;
        return NULL;
    }
    for (int i = 0; i < count; i++)
        own->requests[i] = requests[i];
    return own->requests;
}

/* What this rank gives to a collective operation, while it is added up. */
typedef struct {
    counters *own;
    group_of_ranks *group;
    bool gave;
    bool at_start; /* Of a persistent one: each start gives. */
    uint64_t bytes;
} given;

static void give(given *gift, uint64_t bytes)
{
    gift->gave = true;
    gift->bytes += bytes;
}

static void give_to(given *gift, int rank, uint64_t bytes)
{
    if (rank < 0)
        return;
    give(gift, bytes);
    if (!gift->at_start)
        count_flow(gift->own, SENT_TO, KIND_COLLECTIVE, world_rank(gift->group, rank), bytes);
}

static int own_place(const given *gift)
{
    return gift->group ? gift->group->own_rank : 0;
}

static bool is_root(const given *gift, int root)
{
    if (!gift->group)
        return false;
    return gift->group->between_groups ? root == MPI_ROOT : root == gift->group->own_rank;
}

static int neighbour_count(const given *gift, MPI_Comm comm)
{
    if (!gift->group)
        return 0;
    find_neighbours(gift->group, comm);
    return gift->group->neighbours;
}

static void put(counters *own, call_id call, uint64_t bytes, int at, MPI_Win window)
{
    if (at == MPI_PROC_NULL)
        return;
    count_message(own, call, bytes);
    count_flow(own, SENT_TO, KIND_ONE_SIDED, world_rank(group_of_window(window), at), bytes);
}

static void got(counters *own, call_id call, uint64_t bytes, int at, MPI_Win window)
{
    if (at != MPI_PROC_NULL)
        count_received(own, call, KIND_ONE_SIDED, world_rank(group_of_window(window), at), bytes);
}

/* What the tables use: `own` are the thread's counters, `call` the function's number. */
#define BYTES(count, type) bytes_of((uint64_t)(count), type)
#define NEED_STATUS MPI_Status seen; if (status == MPI_STATUS_IGNORE) status = &seen;
#define NEED_REQUESTS(count) const MPI_Request *were = copy_requests(own, count, requests);
#define NEED_STATUSES(count) \
    NEED_REQUESTS(count) \
    if (were && statuses == MPI_STATUSES_IGNORE) statuses = own->statuses;

#define SENT(count, type, to, comm) { sent(own, call, BYTES(count, type), to, comm); }
#define RECEIVED(comm) { received(own, call, group_of_communicator(comm), status); }
#define NOTE(handle, kind, group, peer, bytes) \
    note(own, (uintptr_t)(handle), kind, group, peer, bytes)
#define RECEIVES(from, comm) \
    { if (from != MPI_PROC_NULL) \
          NOTE(*request, AWAITS_RECEIVE, group_of_communicator(comm), -1, 0); }
#define RECEIVES_AT_START(from, comm) \
    { if (from != MPI_PROC_NULL) \
          NOTE(*request, AWAITS_RECEPTION, group_of_communicator(comm), -1, 0); }
#define RECEIVES_PARTITIONS(count, type, from, comm) \
    { if (from != MPI_PROC_NULL) \
          NOTE(*request, AWAITS_PARTITIONS, NULL, \
               world_rank(group_of_communicator(comm), from), BYTES(count, type)); }
#define SENDS_AT_START(count, type, to, comm) \
    { if (to != MPI_PROC_NULL) \
          NOTE(*request, AWAITS_SEND, NULL, world_rank(group_of_communicator(comm), to), \
               BYTES(count, type)); }
#define RECEIVES_UNSEEN(from) { if (from != MPI_PROC_NULL) own->unseen_receives++; }
#define MATCHED(message, comm) \
    { if ((message) != MPI_MESSAGE_NO_PROC) \
          NOTE(message, AWAITS_MESSAGE, group_of_communicator(comm), -1, 0); }
#define MESSAGE_RECEIVED(was) \
    { awaited found; \
      if (was != MPI_MESSAGE_NO_PROC && complete_awaited((uintptr_t)was, &found)) { \
          received(own, call, found.group, status); \
          release_group(found.group); \
      } }
#define MESSAGE_RECEIVES(was) \
    { awaited found; \
      if (was != MPI_MESSAGE_NO_PROC && complete_awaited((uintptr_t)was, &found)) { \
          NOTE(*request, AWAITS_RECEIVE, found.group, -1, 0); \
          release_group(found.group); \
      } }
#define COMPLETED(was, status) { completed(own, call, was, status); }
#define ALL_COMPLETED(count) \
    { for (int place = 0; were && place < count; place++) \
          completed(own, call, were[place], &statuses[place]); }
#define ONE_COMPLETED(place) \
    { if (were && (place) != MPI_UNDEFINED) completed(own, call, were[place], status); }
#define SOME_COMPLETED(count, indices) \
    { for (int place = 0; were && (count) != MPI_UNDEFINED && place < (count); place++) \
          completed(own, call, were[indices[place]], &statuses[place]); }
#define STARTED(request) { started(own, call, request); }
#define FREED(was) { if (forget_awaited((uintptr_t)was)) own->unseen_receives++; }

#define GIVES(count, type) { give(&gift, BYTES(count, type)); }
#define GIVES_TO(rank, count, type) { give_to(&gift, rank, BYTES(count, type)); }
#define GIVES_ROOT(count, type) GIVES_TO(root, count, type)
#define GIVES_NOTHING { (void)gift; }
#define IF_ROOT(statement) { if (is_root(&gift, root)) statement }
/* Of the group that has the root only the root is named, by another number than a rank. */
#define IF_TAKING_PART(statement) { if (root >= 0) statement }
#define EACH_RANK(statement) \
    { for (int place = 0; gift.group && place < gift.group->size; place++) statement }
#define EACH_OF_OWN_GROUP(statement) \
    { for (int place = 0; gift.group && place < gift.group->own_size; place++) statement }
#define EACH_NEIGHBOUR(statement) \
    { int neighbours = neighbour_count(&gift, comm); \
      for (int place = 0; place < neighbours; place++) { \
          int neighbour = gift.group->neighbour[place]; \
          if (neighbour != MPI_PROC_NULL) statement \
      } }

#define PUT(count, type) { put(own, call, BYTES(count, type), at, window); }
#define PUT_UNLESS_NONE(count, type) { if (operation != MPI_NO_OP) PUT(count, type) }
#define GOT(count, type) { got(own, call, BYTES(count, type), at, window); }

#define UNWRAP(...) __VA_ARGS__
#define WRAP(name, parameters, arguments, before, after) \
    __attribute__((visibility("default"))) int MPI_##name parameters \
    { \
        counters *own = begin_call(); \
        if (!own) \
            return PMPI_##name arguments; \
        const call_id call = CALL_##name; \
        UNWRAP before \
        uint64_t began = nanoseconds_now(); \
        int code = PMPI_##name arguments; \
        own->calls[call].nanoseconds += nanoseconds_now() - began; \
        own->calls[call].calls++; \
        if (code == MPI_SUCCESS) { \
            UNWRAP after \
        } \
        own->inside = false; \
        return code; \
    }

/* The forms of a collective: they give alike, the persistent one at each start. */
#define GIVE_NOW(gives) \
    (given gift = {.own = own, .group = group_of_communicator(comm)}; UNWRAP gives \
     if (gift.gave) count_message(own, call, gift.bytes);)
#define GIVE_AT_START(gives) \
    (given gift = {.own = own, .group = group_of_communicator(comm), .at_start = true}; \
     UNWRAP gives \
     if (gift.gave) NOTE(*request, AWAITS_COLLECTIVE, NULL, -1, gift.bytes);)
#define WRAP_NOW(name, parameters, arguments, gives) \
    WRAP(name, parameters, arguments, (), GIVE_NOW(gives))
#if HAS_MPI3
#define WRAP_REQUESTED(name, parameters, arguments, gives) \
    WRAP(name, (UNWRAP parameters, MPI_Request *request), (UNWRAP arguments, request), (), \
         GIVE_NOW(gives))
#else
#define WRAP_REQUESTED(name, parameters, arguments, gives)
#endif
#if HAS_MPI4
#define WRAP_PERSISTENT(name, parameters, arguments, gives) \
    WRAP(name, (UNWRAP parameters, MPI_Info info, MPI_Request *request), \
         (UNWRAP arguments, info, request), (), GIVE_AT_START(gives))
#else
#define WRAP_PERSISTENT(name, parameters, arguments, gives)
#endif

#define COUNT int
#define DISPLACEMENT int
#define CALL(name, parameters, arguments, before, after) \
    WRAP(name, parameters, arguments, before, after)
#define COLLECTIVE(name, non_blocking_name, parameters, arguments, gives) \
    WRAP_NOW(name, parameters, arguments, gives) \
    WRAP_REQUESTED(non_blocking_name, parameters, arguments, gives) \
    WRAP_PERSISTENT(name##_init, parameters, arguments, gives)
#include "calls_with_counts.h"
#include "calls_without_counts.h"

#if HAS_LARGE_COUNTS
#undef COUNT
#undef DISPLACEMENT
#undef CALL
#undef COLLECTIVE
#define COUNT MPI_Count
#define DISPLACEMENT MPI_Aint
#define CALL(name, parameters, arguments, before, after) \
    WRAP(name##_c, parameters, arguments, before, after)
#define COLLECTIVE(name, non_blocking_name, parameters, arguments, gives) \
    WRAP_NOW(name##_c, parameters, arguments, gives) \
    WRAP_REQUESTED(non_blocking_name##_c, parameters, arguments, gives) \
    WRAP_PERSISTENT(name##_init_c, parameters, arguments, gives)
#include "calls_with_counts.h"
#endif
