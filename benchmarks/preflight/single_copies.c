/* process_vm_readv is not POSIX. */
#define _GNU_SOURCE
#include "single_copies.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define OPEN_FILES "/proc/self/fd"

/* Only a thread of a library may count at the same time, and then by whole calls. */
static volatile unsigned long long copied;

static ssize_t counted(ssize_t moved)
{
    if (moved > 0)
        __atomic_add_fetch(&copied, (unsigned long long)moved, __ATOMIC_RELAXED);
    return moved;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *own, unsigned long own_count,
                         const struct iovec *other, unsigned long other_count, unsigned long flags)
{
    return counted(
        syscall(SYS_process_vm_readv, pid, own, own_count, other, other_count, flags));
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *own, unsigned long own_count,
                          const struct iovec *other, unsigned long other_count, unsigned long flags)
{
    return counted(
        syscall(SYS_process_vm_writev, pid, own, own_count, other, other_count, flags));
}

unsigned long long bytes_by_cma(void)
{
    return copied;
}

int has_xpmem_open(void)
{
    char path[sizeof OPEN_FILES + 256], target[64];
    int found = 0;
    DIR *files = opendir(OPEN_FILES);
    for (struct dirent *entry; files && !found && (entry = readdir(files));) {
        snprintf(path, sizeof path, OPEN_FILES "/%s", entry->d_name);
        const ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = '\0';
        found = strcmp(target, "/dev/xpmem") == 0;
    }
    if (files)
        closedir(files);
    return found;
}
