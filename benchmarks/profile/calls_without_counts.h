/* The functions of MPI that the profile counts and that have no counts of elements, as in
 * calls_with_counts.h: what waits, what makes communicators, and what ends one-sided operations. */

/* What waits for messages, and what starts them. */
CALL(Wait, (MPI_Request *request, MPI_Status *status), (request, status),
     (NEED_STATUS MPI_Request was = *request;), (COMPLETED(was, status)))
CALL(Test, (MPI_Request *request, int *flag, MPI_Status *status), (request, flag, status),
     (NEED_STATUS MPI_Request was = *request;), (if (*flag) COMPLETED(was, status)))
CALL(Waitall, (int count, MPI_Request *requests, MPI_Status *statuses),
     (count, requests, statuses), (NEED_STATUSES(count)), (ALL_COMPLETED(count)))
CALL(Testall, (int count, MPI_Request *requests, int *flag, MPI_Status *statuses),
     (count, requests, flag, statuses), (NEED_STATUSES(count)), (if (*flag) ALL_COMPLETED(count)))
CALL(Waitany, (int count, MPI_Request *requests, int *index, MPI_Status *status),
     (count, requests, index, status), (NEED_STATUS NEED_REQUESTS(count)),
     (ONE_COMPLETED(*index)))
CALL(Testany, (int count, MPI_Request *requests, int *index, int *flag, MPI_Status *status),
     (count, requests, index, flag, status), (NEED_STATUS NEED_REQUESTS(count)),
     (if (*flag) ONE_COMPLETED(*index)))
CALL(Waitsome,
     (int count, MPI_Request *requests, int *completed_count, int *indices, MPI_Status *statuses),
     (count, requests, completed_count, indices, statuses), (NEED_STATUSES(count)),
     (SOME_COMPLETED(*completed_count, indices)))
CALL(Testsome,
     (int count, MPI_Request *requests, int *completed_count, int *indices, MPI_Status *statuses),
     (count, requests, completed_count, indices, statuses), (NEED_STATUSES(count)),
     (SOME_COMPLETED(*completed_count, indices)))
CALL(Start, (MPI_Request *request), (request), (), (STARTED(*request)))
CALL(Startall, (int count, MPI_Request *requests), (count, requests), (),
     (for (int place = 0; place < count; place++) STARTED(requests[place])))
CALL(Request_free, (MPI_Request *request), (request), (MPI_Request was = *request;),
     (FREED(was)))
CALL(Cancel, (MPI_Request *request), (request), (), ())
CALL(Probe, (int from, int tag, MPI_Comm comm, MPI_Status *status), (from, tag, comm, status), (),
     ())
CALL(Iprobe, (int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status),
     (from, tag, comm, flag, status), (), ())
#if HAS_MPI3
CALL(Mprobe, (int from, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),
     (from, tag, comm, message, status), (), (MATCHED(*message, comm)))
CALL(Improbe,
     (int from, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status),
     (from, tag, comm, flag, message, status), (), (if (*flag) MATCHED(*message, comm)))
CALL(Request_get_status, (MPI_Request request, int *flag, MPI_Status *status),
     (request, flag, status), (), ())
#endif
#if HAS_MPI4
CALL(Psend_init,
     (IN void *buffer, int partitions, MPI_Count count, MPI_Datatype type, int to, int tag,
      MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (buffer, partitions, count, type, to, tag, comm, info, request), (),
     (SENDS_AT_START(partitions * count, type, to, comm)))
CALL(Precv_init,
     (void *buffer, int partitions, MPI_Count count, MPI_Datatype type, int from, int tag,
      MPI_Comm comm, MPI_Info info, MPI_Request *request),
     (buffer, partitions, count, type, from, tag, comm, info, request), (),
     (RECEIVES_PARTITIONS(partitions * count, type, from, comm)))
CALL(Pready, (int partition, MPI_Request request), (partition, request), (), ())
CALL(Pready_range, (int first, int last, MPI_Request request), (first, last, request), (), ())
CALL(Pready_list, (int count, PARTITIONS partitions, MPI_Request request),
     (count, partitions, request), (), ())
CALL(Parrived, (MPI_Request request, int partition, int *flag), (request, partition, flag), (), ())
#endif

COLLECTIVE(Barrier, Ibarrier, (MPI_Comm comm), (comm), (GIVES_NOTHING))

/* What makes and frees communicators. */
CALL(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made), (), ())
CALL(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made), (), ())
CALL(Comm_split, (MPI_Comm comm, int colour, int key, MPI_Comm *made), (comm, colour, key, made),
     (), ())
CALL(Comm_free, (MPI_Comm *comm), (comm), (), ())
CALL(Comm_disconnect, (MPI_Comm *comm), (comm), (), ())
CALL(Intercomm_create,
     (MPI_Comm comm, int leader, MPI_Comm between, int other_leader, int tag, MPI_Comm *made),
     (comm, leader, between, other_leader, tag, made), (), ())
CALL(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made), (), ())
CALL(Cart_create,
     (MPI_Comm comm, int dimensions, IN int *extents, IN int *periods, int reorder,
      MPI_Comm *made),
     (comm, dimensions, extents, periods, reorder, made), (), ())
CALL(Cart_sub, (MPI_Comm comm, IN int *remain, MPI_Comm *made), (comm, remain, made), (), ())
CALL(Graph_create,
     (MPI_Comm comm, int nodes, IN int *index, IN int *edges, int reorder, MPI_Comm *made),
     (comm, nodes, index, edges, reorder, made), (), ())
#if HAS_MPI3
CALL(Comm_idup, (MPI_Comm comm, MPI_Comm *made, MPI_Request *request), (comm, made, request), (),
     ())
CALL(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made), (),
     ())
CALL(Comm_split_type, (MPI_Comm comm, int kind, int key, MPI_Info info, MPI_Comm *made),
     (comm, kind, key, info, made), (), ())
CALL(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made),
     (comm, group, tag, made), (), ())
CALL(Dist_graph_create,
     (MPI_Comm comm, int count, IN int *sources, IN int *degrees, IN int *destinations,
      IN int *weights, MPI_Info info, int reorder, MPI_Comm *made),
     (comm, count, sources, degrees, destinations, weights, info, reorder, made), (), ())
CALL(Dist_graph_create_adjacent,
     (MPI_Comm comm, int in, IN int *sources, IN int *source_weights, int out,
      IN int *destinations, IN int *weights, MPI_Info info, int reorder, MPI_Comm *made),
     (comm, in, sources, source_weights, out, destinations, weights, info, reorder, made), (), ())
#endif

/* Windows, and what begins and ends one-sided operations. */
CALL(Win_create,
     (void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *window),
     (base, size, unit, info, comm, window), (), ())
CALL(Win_free, (MPI_Win *window), (window), (), ())
CALL(Win_fence, (int assertion, MPI_Win window), (assertion, window), (), ())
CALL(Win_post, (MPI_Group group, int assertion, MPI_Win window), (group, assertion, window), (), ())
CALL(Win_start, (MPI_Group group, int assertion, MPI_Win window), (group, assertion, window), (),
     ())
CALL(Win_complete, (MPI_Win window), (window), (), ())
CALL(Win_wait, (MPI_Win window), (window), (), ())
CALL(Win_test, (MPI_Win window, int *flag), (window, flag), (), ())
#if HAS_MPI3
CALL(Win_lock, (int kind, int rank, int assertion, MPI_Win window),
     (kind, rank, assertion, window), (), ())
CALL(Win_unlock, (int rank, MPI_Win window), (rank, window), (), ())
CALL(Win_lock_all, (int assertion, MPI_Win window), (assertion, window), (), ())
CALL(Win_unlock_all, (MPI_Win window), (window), (), ())
CALL(Win_flush, (int rank, MPI_Win window), (rank, window), (), ())
CALL(Win_flush_all, (MPI_Win window), (window), (), ())
CALL(Win_flush_local, (int rank, MPI_Win window), (rank, window), (), ())
CALL(Win_flush_local_all, (MPI_Win window), (window), (), ())
CALL(Win_sync, (MPI_Win window), (window), (), ())
CALL(Win_allocate,
     (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window),
     (size, unit, info, comm, base, window), (), ())
CALL(Win_allocate_shared,
     (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window),
     (size, unit, info, comm, base, window), (), ())
CALL(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *window), (info, comm, window), (),
     ())
CALL(Compare_and_swap,
     (IN void *buffer, IN void *compared, void *result, MPI_Datatype type, int at,
      MPI_Aint displacement, MPI_Win window),
     (buffer, compared, result, type, at, displacement, window), (), (PUT(1, type) GOT(1, type)))
CALL(Fetch_and_op,
     (IN void *buffer, void *result, MPI_Datatype type, int at, MPI_Aint displacement,
      MPI_Op operation, MPI_Win window),
     (buffer, result, type, at, displacement, operation, window), (),
     (PUT_UNLESS_NONE(1, type) GOT(1, type)))
#endif
