/* For memory.py: refuses a program the n-th large block of memory that it asks for, as a system without memory would.
 *
 * REFUSED is n, counted in each process from its start; 0 refuses nothing. LARGE is the bytes from which on a block, or
 * an anonymous map, counts. The program may ask for the block again at once, since it keeps a reserve: for these bytes
 * the same thread is refused, too. COUNTS is a file of three numbers: the most blocks that a process asked for, how many
 * were refused, and the bytes of the last one that was. PLACES is a file that gets the callers of each. */
#define _GNU_SOURCE
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

/* How often the allocator of the program asks for a block that the system refuses, and the bytes up to which it does. */
#define TRIES 17
#define MAX_FROM_RESERVE (2 << 20)

static atomic_ulong number;
static unsigned long refused;
static size_t large = (size_t)-1;
static _Atomic unsigned long *counts;
static const char *places;
static __thread size_t again;
static __thread int tries;

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("COUNTS"), *n = getenv("REFUSED"), *bytes = getenv("LARGE");
    places = getenv("PLACES");
    if (!file || !n || !bytes)
        return;
    int fd = open(file, O_RDWR | O_CLOEXEC);
    void *map = (void *)syscall(SYS_mmap, NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return;
    void *warm[1]; /* the first call loads a library */
    backtrace(warm, 1);
    unsetenv("LD_PRELOAD"); /* not the programs that it starts */
    counts = map;
    refused = strtoul(n, NULL, 10);
    large = strtoul(bytes, NULL, 10);
}

static void note(size_t bytes) {
    counts[1]++;
    counts[2] = bytes;
    int fd = places ? open(places, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *callers[64];
    dprintf(fd, "%zu\n", bytes);
    backtrace_symbols_fd(callers, backtrace(callers, 64), fd);
    close(fd);
}

static int refuse(size_t bytes) {
    if (bytes < large)
        return 0;
    if (again == bytes && tries > 0) {
        tries--;
        return 1;
    }
    again = 0;
    unsigned long n = ++number, most = counts[0];
    while (n > most && !atomic_compare_exchange_weak(&counts[0], &most, n))
        ;
    if (n != refused)
        return 0;
    again = bytes;
    tries = bytes > MAX_FROM_RESERVE ? 0 : TRIES - 1;
    note(bytes);
    return 1;
}

void *malloc(size_t bytes) {
    if (refuse(bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes) {
    if (bytes && count <= (size_t)-1 / bytes && refuse(count * bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes) {
    if (refuse(bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(block, bytes);
}

int posix_memalign(void **block, size_t align, size_t bytes) {
    if (refuse(bytes))
        return ENOMEM;
    *block = __libc_memalign(align, bytes);
    return *block ? 0 : ENOMEM;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    if ((flags & MAP_ANONYMOUS) && refuse(bytes)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int fd, off_t offset) {
    return mmap(at, bytes, protection, flags, fd, offset);
}
