/* Loaded before a program: each rank is stopped when it describes itself, and goes on as soon as
 * another process has seen that. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int is_stopped(pid_t process)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)process);
    FILE *file = fopen(path, "r");
    if (!file)
        exit(1);
    const size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[2] == 'T';
}

int MPI_Gather(const void *from, int count, MPI_Datatype type, void *to, int to_count,
               MPI_Datatype to_type, int root, MPI_Comm world)
{
    const pid_t rank = getpid(), waker = fork();
    if (waker < 0)
        return MPI_ERR_OTHER;
    if (waker == 0) {
        while (!is_stopped(rank))
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        kill(rank, SIGCONT);
        _exit(0);
    }
    raise(SIGSTOP);
    while (waitpid(waker, NULL, 0) < 0)
        ;
    return PMPI_Gather(from, count, type, to, to_count, to_type, root, world);
}
