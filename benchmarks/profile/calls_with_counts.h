/* The functions of MPI that the profile counts and whose messages have counts: one entry each, from
 * which the wrapper and the names follow. It is included several times, each time with other
 * meanings of
 *
 *   CALL(name, parameters, arguments, before, after)
 *   COLLECTIVE(name, non_blocking_name, parameters, arguments, gives)
 *
 * `before` and `after` are statements around the call, the latter where it succeeded; wrappers.c has
 * what they may use. A collective stands for its three forms: blocking, non-blocking, persistent.
 * COUNT and DISPLACEMENT are int, or of MPI-4's forms with large counts MPI_Count and MPI_Aint. */

/* Messages between two ranks. */
#define SENDING(name) \
    CALL(name, \
         (IN void *buffer, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm), \
         (buffer, count, type, to, tag, comm), (), (SENT(count, type, to, comm)))
SENDING(Send)
SENDING(Bsend)
SENDING(Ssend)
SENDING(Rsend)
#undef SENDING

#define SENDING(name, ...) \
    CALL(name, (IN void *buffer, COUNT count, MPI_Datatype type, int to, int tag, MPI_Comm comm, \
                MPI_Request *request), \
         (buffer, count, type, to, tag, comm, request), (), (__VA_ARGS__))
SENDING(Isend, SENT(count, type, to, comm))
SENDING(Ibsend, SENT(count, type, to, comm))
SENDING(Issend, SENT(count, type, to, comm))
SENDING(Irsend, SENT(count, type, to, comm))
SENDING(Send_init, SENDS_AT_START(count, type, to, comm))
SENDING(Bsend_init, SENDS_AT_START(count, type, to, comm))
SENDING(Ssend_init, SENDS_AT_START(count, type, to, comm))
SENDING(Rsend_init, SENDS_AT_START(count, type, to, comm))
#undef SENDING

CALL(Recv,
     (void *buffer, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
      MPI_Status *status),
     (buffer, count, type, from, tag, comm, status), (NEED_STATUS), (RECEIVED(comm)))
CALL(Irecv,
     (void *buffer, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
      MPI_Request *request),
     (buffer, count, type, from, tag, comm, request), (), (RECEIVES(from, comm)))
CALL(Recv_init,
     (void *buffer, COUNT count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
      MPI_Request *request),
     (buffer, count, type, from, tag, comm, request), (), (RECEIVES_AT_START(from, comm)))
CALL(Sendrecv,
     (IN void *buffer, COUNT count, MPI_Datatype type, int to, int tag, void *receive_buffer,
      COUNT receive_count, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm,
      MPI_Status *status),
     (buffer, count, type, to, tag, receive_buffer, receive_count, receive_type, from, receive_tag,
      comm, status),
     (NEED_STATUS), (SENT(count, type, to, comm) RECEIVED(comm)))
CALL(Sendrecv_replace,
     (void *buffer, COUNT count, MPI_Datatype type, int to, int tag, int from, int receive_tag,
      MPI_Comm comm, MPI_Status *status),
     (buffer, count, type, to, tag, from, receive_tag, comm, status), (NEED_STATUS),
     (SENT(count, type, to, comm) RECEIVED(comm)))
#if HAS_MPI3
CALL(Mrecv,
     (void *buffer, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Status *status),
     (buffer, count, type, message, status), (NEED_STATUS MPI_Message was = *message;),
     (MESSAGE_RECEIVED(was)))
CALL(Imrecv,
     (void *buffer, COUNT count, MPI_Datatype type, MPI_Message *message, MPI_Request *request),
     (buffer, count, type, message, request), (MPI_Message was = *message;),
     (MESSAGE_RECEIVES(was)))
#endif
#if HAS_MPI4
CALL(Isendrecv,
     (IN void *buffer, COUNT count, MPI_Datatype type, int to, int tag, void *receive_buffer,
      COUNT receive_count, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm,
      MPI_Request *request),
     (buffer, count, type, to, tag, receive_buffer, receive_count, receive_type, from, receive_tag,
      comm, request),
     (), (SENT(count, type, to, comm) RECEIVES_UNSEEN(from)))
CALL(Isendrecv_replace,
     (void *buffer, COUNT count, MPI_Datatype type, int to, int tag, int from, int receive_tag,
      MPI_Comm comm, MPI_Request *request),
     (buffer, count, type, to, tag, from, receive_tag, comm, request), (),
     (SENT(count, type, to, comm) RECEIVES_UNSEEN(from)))
#endif

/* Collective operations. */
COLLECTIVE(Bcast, Ibcast,
           (void *buffer, COUNT count, MPI_Datatype type, int root, MPI_Comm comm),
           (buffer, count, type, root, comm), (IF_ROOT(GIVES(count, type))))
#define ROOTED_PARAMETERS \
    (IN void *buffer, COUNT count, MPI_Datatype type, void *into, COUNT into_count, \
     MPI_Datatype into_type, int root, MPI_Comm comm)
#define ROOTED_ARGUMENTS (buffer, count, type, into, into_count, into_type, root, comm)
COLLECTIVE(Gather, Igather, ROOTED_PARAMETERS, ROOTED_ARGUMENTS,
           (if (IN_PLACE(buffer)) GIVES_ROOT(into_count, into_type) else GIVES_ROOT(count, type)))
COLLECTIVE(Scatter, Iscatter, ROOTED_PARAMETERS, ROOTED_ARGUMENTS,
           (IF_ROOT(EACH_RANK(GIVES_TO(place, count, type)))))
COLLECTIVE(Gatherv, Igatherv,
           (IN void *buffer, COUNT count, MPI_Datatype type, void *into, IN COUNT *into_counts,
            IN DISPLACEMENT *displacements, MPI_Datatype into_type, int root, MPI_Comm comm),
           (buffer, count, type, into, into_counts, displacements, into_type, root, comm),
           (if (IN_PLACE(buffer)) GIVES_ROOT(into_counts[own_place(&gift)], into_type)
            else GIVES_ROOT(count, type)))
COLLECTIVE(Scatterv, Iscatterv,
           (IN void *buffer, IN COUNT *counts, IN DISPLACEMENT *displacements, MPI_Datatype type,
            void *into, COUNT into_count, MPI_Datatype into_type, int root, MPI_Comm comm),
           (buffer, counts, displacements, type, into, into_count, into_type, root, comm),
           (IF_ROOT(EACH_RANK(GIVES_TO(place, counts[place], type)))))
#define UNROOTED_PARAMETERS \
    (IN void *buffer, COUNT count, MPI_Datatype type, void *into, COUNT into_count, \
     MPI_Datatype into_type, MPI_Comm comm)
#define UNROOTED_ARGUMENTS (buffer, count, type, into, into_count, into_type, comm)
COLLECTIVE(Allgather, Iallgather, UNROOTED_PARAMETERS, UNROOTED_ARGUMENTS,
           (if (IN_PLACE(buffer)) GIVES(into_count, into_type) else GIVES(count, type)))
COLLECTIVE(Alltoall, Ialltoall, UNROOTED_PARAMETERS, UNROOTED_ARGUMENTS,
           (if (IN_PLACE(buffer)) EACH_RANK(GIVES_TO(place, into_count, into_type))
            else EACH_RANK(GIVES_TO(place, count, type))))
#define GATHERING_PARAMETERS \
    (IN void *buffer, COUNT count, MPI_Datatype type, void *into, IN COUNT *into_counts, \
     IN DISPLACEMENT *displacements, MPI_Datatype into_type, MPI_Comm comm)
#define GATHERING_ARGUMENTS \
    (buffer, count, type, into, into_counts, displacements, into_type, comm)
COLLECTIVE(Allgatherv, Iallgatherv, GATHERING_PARAMETERS, GATHERING_ARGUMENTS,
           (if (IN_PLACE(buffer)) GIVES(into_counts[own_place(&gift)], into_type)
            else GIVES(count, type)))
#define SPREADING_PARAMETERS \
    (IN void *buffer, IN COUNT *counts, IN DISPLACEMENT *displacements, MPI_Datatype type, \
     void *into, IN COUNT *into_counts, IN DISPLACEMENT *into_displacements, \
     MPI_Datatype into_type, MPI_Comm comm)
#define SPREADING_ARGUMENTS \
    (buffer, counts, displacements, type, into, into_counts, into_displacements, into_type, comm)
COLLECTIVE(Alltoallv, Ialltoallv, SPREADING_PARAMETERS, SPREADING_ARGUMENTS,
           (if (IN_PLACE(buffer)) EACH_RANK(GIVES_TO(place, into_counts[place], into_type))
            else EACH_RANK(GIVES_TO(place, counts[place], type))))
#define TYPED_PARAMETERS(displacement) \
    (IN void *buffer, IN COUNT *counts, IN displacement *displacements, IN MPI_Datatype *types, \
     void *into, IN COUNT *into_counts, IN displacement *into_displacements, \
     IN MPI_Datatype *into_types, MPI_Comm comm)
#define TYPED_ARGUMENTS \
    (buffer, counts, displacements, types, into, into_counts, into_displacements, into_types, comm)
COLLECTIVE(Alltoallw, Ialltoallw, TYPED_PARAMETERS(DISPLACEMENT), TYPED_ARGUMENTS,
           (if (IN_PLACE(buffer)) EACH_RANK(GIVES_TO(place, into_counts[place], into_types[place]))
            else EACH_RANK(GIVES_TO(place, counts[place], types[place]))))

COLLECTIVE(Reduce, Ireduce,
           (IN void *buffer, void *into, COUNT count, MPI_Datatype type, MPI_Op operation, int root,
            MPI_Comm comm),
           (buffer, into, count, type, operation, root, comm), (IF_TAKING_PART(GIVES(count, type))))
#define REDUCING(name, non_blocking_name) \
    COLLECTIVE(name, non_blocking_name, \
               (IN void *buffer, void *into, COUNT count, MPI_Datatype type, MPI_Op operation, \
                MPI_Comm comm), \
               (buffer, into, count, type, operation, comm), (GIVES(count, type)))
REDUCING(Allreduce, Iallreduce)
REDUCING(Scan, Iscan)
REDUCING(Exscan, Iexscan)
#undef REDUCING
COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           (IN void *buffer, void *into, IN COUNT *counts, MPI_Datatype type, MPI_Op operation,
            MPI_Comm comm),
           (buffer, into, counts, type, operation, comm),
           (EACH_OF_OWN_GROUP(GIVES(counts[place], type))))
#if HAS_MPI3
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block,
           (IN void *buffer, void *into, COUNT count, MPI_Datatype type, MPI_Op operation,
            MPI_Comm comm),
           (buffer, into, count, type, operation, comm),
           (EACH_OF_OWN_GROUP(GIVES(count, type))))
COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, UNROOTED_PARAMETERS, UNROOTED_ARGUMENTS,
           (GIVES(count, type)))
COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, GATHERING_PARAMETERS, GATHERING_ARGUMENTS,
           (GIVES(count, type)))
COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, UNROOTED_PARAMETERS, UNROOTED_ARGUMENTS,
           (EACH_NEIGHBOUR(GIVES_TO(neighbour, count, type))))
COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, SPREADING_PARAMETERS, SPREADING_ARGUMENTS,
           (EACH_NEIGHBOUR(GIVES_TO(neighbour, counts[place], type))))
COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw, TYPED_PARAMETERS(MPI_Aint), TYPED_ARGUMENTS,
           (EACH_NEIGHBOUR(GIVES_TO(neighbour, counts[place], types[place]))))
#endif
#undef ROOTED_PARAMETERS
#undef ROOTED_ARGUMENTS
#undef UNROOTED_PARAMETERS
#undef UNROOTED_ARGUMENTS
#undef GATHERING_PARAMETERS
#undef GATHERING_ARGUMENTS
#undef SPREADING_PARAMETERS
#undef SPREADING_ARGUMENTS
#undef TYPED_PARAMETERS
#undef TYPED_ARGUMENTS

/* One-sided operations. */
#define TARGET_PARAMETERS int at, MPI_Aint displacement, COUNT at_count, MPI_Datatype at_type
#define TARGET_ARGUMENTS at, displacement, at_count, at_type
CALL(Put,
     (IN void *buffer, COUNT count, MPI_Datatype type, TARGET_PARAMETERS, MPI_Win window),
     (buffer, count, type, TARGET_ARGUMENTS, window), (), (PUT(count, type)))
CALL(Get, (void *buffer, COUNT count, MPI_Datatype type, TARGET_PARAMETERS, MPI_Win window),
     (buffer, count, type, TARGET_ARGUMENTS, window), (), (GOT(count, type)))
CALL(Accumulate,
     (IN void *buffer, COUNT count, MPI_Datatype type, TARGET_PARAMETERS, MPI_Op operation,
      MPI_Win window),
     (buffer, count, type, TARGET_ARGUMENTS, operation, window), (), (PUT(count, type)))
#if HAS_MPI3
CALL(Rput,
     (IN void *buffer, COUNT count, MPI_Datatype type, TARGET_PARAMETERS, MPI_Win window,
      MPI_Request *request),
     (buffer, count, type, TARGET_ARGUMENTS, window, request), (), (PUT(count, type)))
CALL(Rget,
     (void *buffer, COUNT count, MPI_Datatype type, TARGET_PARAMETERS, MPI_Win window,
      MPI_Request *request),
     (buffer, count, type, TARGET_ARGUMENTS, window, request), (), (GOT(count, type)))
CALL(Raccumulate,
     (IN void *buffer, COUNT count, MPI_Datatype type, TARGET_PARAMETERS, MPI_Op operation,
      MPI_Win window, MPI_Request *request),
     (buffer, count, type, TARGET_ARGUMENTS, operation, window, request), (), (PUT(count, type)))
CALL(Get_accumulate,
     (IN void *buffer, COUNT count, MPI_Datatype type, void *result, COUNT result_count,
      MPI_Datatype result_type, TARGET_PARAMETERS, MPI_Op operation, MPI_Win window),
     (buffer, count, type, result, result_count, result_type, TARGET_ARGUMENTS, operation, window),
     (), (PUT_UNLESS_NONE(count, type) GOT(result_count, result_type)))
CALL(Rget_accumulate,
     (IN void *buffer, COUNT count, MPI_Datatype type, void *result, COUNT result_count,
      MPI_Datatype result_type, TARGET_PARAMETERS, MPI_Op operation, MPI_Win window,
      MPI_Request *request),
     (buffer, count, type, result, result_count, result_type, TARGET_ARGUMENTS, operation, window,
      request),
     (), (PUT_UNLESS_NONE(count, type) GOT(result_count, result_type)))
#endif
#undef TARGET_PARAMETERS
#undef TARGET_ARGUMENTS
