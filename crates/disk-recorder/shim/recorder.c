/* Loaded into a process by LD_PRELOAD, this library stands between it and the system's calls on files.
 *
 * Below one directory it records each change (writes, truncations, renames, unlinks, syncs, ...) in the order in
 * which the changes took effect, and it can let calls fail or wait. It changes nothing else. What it does not model
 * it refuses loudly: a recorder that misses a change would prove nothing.
 *
 * The records are read by src/trace.rs, the control block is src/control.rs; the three change together. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* The kinds of records. */
enum {
    START = 1, OPEN, WRITE, TRUNCATE, ALLOCATE, SYNC_BEGIN, SYNC_END, SYNC_FAILED, RENAME, LINK, UNLINK, MAKE_DIRECTORY,
    REMOVE_DIRECTORY, MARK,
};
/* The flags of an OPEN record. */
enum { CREATED = 1, TRUNCATED = 2 };

/* The kinds of calls that can be made to fail, as bits of `control->kinds`. */
enum {
    FAULT_WRITE = 1, FAULT_SYNC = 2, FAULT_CREATE = 4, FAULT_RENAME = 8, FAULT_UNLINK = 16, FAULT_TRUNCATE = 32,
    FAULT_ALLOCATE = 64, FAULT_DIRECTORY = 128,
};

#define KILL UINT64_MAX

struct control {
    uint64_t kinds;       /* which calls count, and fail */
    uint64_t calls;       /* how many of them there were */
    uint64_t first;       /* the number of the first call that fails, from 1; 0 for none */
    uint64_t count;       /* how many fail from there on */
    uint64_t error;       /* with which errno; 0: writes are cut short instead; KILL: the process is killed */
    uint64_t failed;      /* how many have failed */
    uint64_t hold_syncs;  /* while set, syncs wait */
    uint64_t held_syncs;  /* how many wait now */
};

struct record {
    uint32_t size_bytes;  /* of everything behind this member */
    uint16_t kind;
    uint16_t flags;
    uint32_t process;
    uint32_t handle;
    uint64_t offset;      /* of a write; the number of a sync */
    uint64_t length;      /* of a truncated or allocated file */
    uint32_t path_bytes;
    uint32_t other_bytes;
};

#define HANDLES_MAX 65536
#define MARK_BYTES_MAX 1024
#define TRACE_DESCRIPTOR_MIN 900

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char directory[PATH_MAX];
static size_t directory_bytes;
static const char *mark_prefix;
static int trace = -1;
static int swallows_syncs;
static struct control *control;
static uint32_t handles[HANDLES_MAX]; /* by descriptor; 0: not recorded */
static uint32_t handle_last;
static uint64_t sync_last;

#define REAL(name) real_##name
#define DECLARE(result, name, ...) static result (*REAL(name))(__VA_ARGS__)

DECLARE(int, open, const char *, int, ...);
DECLARE(int, openat, int, const char *, int, ...);
DECLARE(FILE *, fopen, const char *, const char *);
DECLARE(int, close, int);
DECLARE(int, dup, int);
DECLARE(int, dup2, int, int);
DECLARE(int, dup3, int, int, int);
DECLARE(int, fcntl, int, int, ...);
DECLARE(ssize_t, write, int, const void *, size_t);
DECLARE(ssize_t, pwrite, int, const void *, size_t, off_t);
DECLARE(ssize_t, writev, int, const struct iovec *, int);
DECLARE(ssize_t, pwritev, int, const struct iovec *, int, off_t);
DECLARE(ssize_t, pwritev2, int, const struct iovec *, int, off_t, int);
DECLARE(ssize_t, send, int, const void *, size_t, int);
DECLARE(ssize_t, sendto, int, const void *, size_t, int, const struct sockaddr *, socklen_t);
DECLARE(ssize_t, sendmsg, int, const struct msghdr *, int);
DECLARE(int, ftruncate, int, off_t);
DECLARE(int, truncate, const char *, off_t);
DECLARE(int, fallocate, int, int, off_t, off_t);
DECLARE(int, posix_fallocate, int, off_t, off_t);
DECLARE(int, fsync, int);
DECLARE(int, fdatasync, int);
DECLARE(int, syncfs, int);
DECLARE(int, rename, const char *, const char *);
DECLARE(int, renameat, int, const char *, int, const char *);
DECLARE(int, renameat2, int, const char *, int, const char *, unsigned);
DECLARE(int, link, const char *, const char *);
DECLARE(int, linkat, int, const char *, int, const char *, int);
DECLARE(int, symlink, const char *, const char *);
DECLARE(int, symlinkat, const char *, int, const char *);
DECLARE(int, unlink, const char *);
DECLARE(int, unlinkat, int, const char *, int);
DECLARE(int, remove, const char *);
DECLARE(int, rmdir, const char *);
DECLARE(int, mkdir, const char *, mode_t);
DECLARE(int, mkdirat, int, const char *, mode_t);
DECLARE(ssize_t, copy_file_range, int, off_t *, int, off_t *, size_t, unsigned);
DECLARE(ssize_t, sendfile, int, int, off_t *, size_t);
DECLARE(ssize_t, splice, int, off_t *, int, off_t *, size_t, unsigned);

static void refuse(const char *what, const char *path) {
    fprintf(stderr, "disk recorder: %s of %s is not modelled\n", what, path);
    abort();
}

static void fail(const char *what) {
    fprintf(stderr, "disk recorder: %s: %s\n", what, strerror(errno));
    abort();
}

static void put(uint16_t kind, uint16_t flags, uint32_t handle, uint64_t offset, uint64_t length, const char *path,
                const char *other, const struct iovec *data, int data_count, size_t data_bytes);

static void set_up(void) {
#define FIND(name) \
    if (!(*(void **)&REAL(name) = dlsym(RTLD_NEXT, #name))) fail("cannot find " #name)
    FIND(open); FIND(openat); FIND(fopen); FIND(close); FIND(dup); FIND(dup2); FIND(dup3); FIND(fcntl);
    FIND(write); FIND(pwrite); FIND(writev); FIND(pwritev); FIND(pwritev2); FIND(send); FIND(sendto); FIND(sendmsg);
    FIND(ftruncate); FIND(truncate); FIND(fallocate); FIND(posix_fallocate); FIND(fsync); FIND(fdatasync);
    FIND(syncfs); FIND(rename); FIND(renameat); FIND(renameat2); FIND(link); FIND(linkat); FIND(symlink);
    FIND(symlinkat); FIND(unlink); FIND(unlinkat); FIND(remove); FIND(rmdir); FIND(mkdir); FIND(mkdirat);
    FIND(copy_file_range); FIND(sendfile); FIND(splice);

    const char *root = getenv("DISK_RECORDER_DIRECTORY");
    if (!root) return;
    if (!realpath(root, directory)) fail("DISK_RECORDER_DIRECTORY");
    directory_bytes = strlen(directory);
    mark_prefix = getenv("DISK_RECORDER_MARK");
    swallows_syncs = getenv("DISK_RECORDER_SWALLOW_SYNCS") != NULL;
    const char *path = getenv("DISK_RECORDER_TRACE");
    if (path) {
        int file = REAL(open)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        /* Out of the way of programs that choose their descriptors. */
        trace = file < 0 ? -1 : REAL(fcntl)(file, F_DUPFD_CLOEXEC, TRACE_DESCRIPTOR_MIN);
        if (trace < 0) fail(path);
        REAL(close)(file);
    }
    path = getenv("DISK_RECORDER_CONTROL");
    if (path) {
        int file = REAL(open)(path, O_RDWR | O_CLOEXEC);
        if (file < 0) fail(path);
        control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (control == MAP_FAILED) fail(path);
        REAL(close)(file);
    }
    put(START, 0, 0, 0, 0, "", "", NULL, 0, 0);
}

/* Every wrapper begins here: another library's constructor may call it before ours has run. The allocator may call
 * one while this thread sets up. */
static void begin(void) {
    static __thread int is_inside;
    if (is_inside) return;
    is_inside = 1;
    pthread_once(&once, set_up);
    is_inside = 0;
}

__attribute__((constructor)) static void initialise(void) { begin(); }

/* Writes one record. The caller holds the lock, so that records are in the order of their effects. */
static void put(uint16_t kind, uint16_t flags, uint32_t handle, uint64_t offset, uint64_t length, const char *path,
                const char *other, const struct iovec *data, int data_count, size_t data_bytes) {
    if (trace < 0) return;
    int saved = errno;
    size_t path_bytes = strlen(path), other_bytes = strlen(other);
    size_t size = sizeof(struct record) + path_bytes + other_bytes + data_bytes;
    char *buffer = malloc(size);
    if (!buffer) fail("no memory for a record");
    struct record head = {
        .size_bytes = size - sizeof(uint32_t), .kind = kind, .flags = flags, .process = getpid(), .handle = handle,
        .offset = offset, .length = length, .path_bytes = path_bytes, .other_bytes = other_bytes,
    };
    char *end = buffer;
    memcpy(end, &head, sizeof head), end += sizeof head;
    memcpy(end, path, path_bytes), end += path_bytes;
    memcpy(end, other, other_bytes), end += other_bytes;
    for (int part = 0; part < data_count && data_bytes; part++) {
        size_t bytes = data[part].iov_len < data_bytes ? data[part].iov_len : data_bytes;
        memcpy(end, data[part].iov_base, bytes), end += bytes, data_bytes -= bytes;
    }
    for (char *from = buffer; from < end;) {
        ssize_t written = REAL(write)(trace, from, end - from);
        if (written < 0 && errno != EINTR) fail("cannot write the trace");
        if (written > 0) from += written;
    }
    free(buffer);
    errno = saved;
}

/* Makes a path absolute and takes `.`, `..` and repeated slashes out of it. */
static int absolute(int at, const char *path, char *result) {
    char joined[2 * PATH_MAX];
    if (path[0] == '/') {
        if (snprintf(joined, sizeof joined, "%s", path) >= PATH_MAX) return 0;
    } else {
        char base[PATH_MAX];
        if (at == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return 0;
        } else {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", at);
            ssize_t bytes = readlink(link, base, sizeof base - 1);
            if (bytes < 0) return 0;
            base[bytes] = 0;
        }
        if (snprintf(joined, sizeof joined, "%s/%s", base, path) >= PATH_MAX) return 0;
    }
    size_t end = 0;
    for (char *save, *name = strtok_r(joined, "/", &save); name; name = strtok_r(NULL, "/", &save)) {
        if (!strcmp(name, ".")) continue;
        if (!strcmp(name, "..")) {
            while (end && result[--end] != '/') {}
            continue;
        }
        size_t bytes = strlen(name);
        result[end++] = '/';
        memcpy(result + end, name, bytes);
        end += bytes;
    }
    result[end] = 0;
    return 1;
}

/* The part of a path below the recorded directory ("" for itself), or NULL if it is elsewhere. */
static const char *recorded(int at, const char *path, char *buffer) {
    if (!directory_bytes || !path || !absolute(at, path, buffer)) return NULL;
    if (strncmp(buffer, directory, directory_bytes)) return NULL;
    const char *rest = buffer + directory_bytes;
    return *rest == 0 ? rest : *rest == '/' ? rest + 1 : NULL;
}

static uint32_t handle_of(int file) { return file >= 0 && file < HANDLES_MAX ? handles[file] : 0; }

/* Whether a call is to fail, with errno set; the caller holds the lock. `*shortened` instead if it is a write that is
 * to be cut short. */
static int fails(uint64_t kind, int *shortened) {
    if (!control || !(control->kinds & kind)) return 0;
    uint64_t number = ++control->calls;
    if (!control->first || number < control->first || number - control->first >= control->count) return 0;
    control->failed++;
    if (control->error == KILL) raise(SIGKILL);
    if (!control->error) {
        if (shortened) *shortened = 1;
        return 0;
    }
    errno = control->error;
    return 1;
}

static void note_mark(const struct iovec *data, int count) {
    if (!mark_prefix || trace < 0 || count < 1) return;
    size_t bytes = strlen(mark_prefix), total = 0;
    if (data[0].iov_len < bytes || memcmp(data[0].iov_base, mark_prefix, bytes)) return;
    for (int part = 0; part < count; part++) total += data[part].iov_len;
    pthread_mutex_lock(&lock);
    put(MARK, 0, 0, 0, 0, "", "", data, count, total < MARK_BYTES_MAX ? total : MARK_BYTES_MAX);
    pthread_mutex_unlock(&lock);
}

/* ---- opening and closing ---- */

static int open_recorded(int at, const char *path, int flags, mode_t mode, const char *name) {
    if ((flags & O_TMPFILE) == O_TMPFILE) refuse("O_TMPFILE", path);
    int writes = (flags & O_ACCMODE) != O_RDONLY;
    if (writes && (flags & (O_SYNC | O_DSYNC | O_DIRECT))) refuse("opening with O_SYNC, O_DSYNC or O_DIRECT", path);
    pthread_mutex_lock(&lock);
    struct stat status;
    int existed = fstatat(at, path, &status, 0) == 0;
    int changes = (flags & O_CREAT && !existed) || (flags & O_TRUNC && existed);
    int file = -1;
    if (!(changes && fails(FAULT_CREATE, NULL))) file = REAL(openat)(at, path, flags, mode);
    if (file >= HANDLES_MAX) refuse("a descriptor beyond the table", path);
    if (file >= 0) {
        handles[file] = ++handle_last;
        int flag = (flags & O_CREAT && !existed ? CREATED : 0) | (flags & O_TRUNC && existed ? TRUNCATED : 0);
        put(OPEN, flag, handles[file], 0, 0, name, "", NULL, 0, 0);
    }
    pthread_mutex_unlock(&lock);
    return file;
}

static int open_any(int at, const char *path, int flags, mode_t mode) {
    begin();
    char buffer[PATH_MAX];
    const char *name = recorded(at, path, buffer);
    return name ? open_recorded(at, path, flags, mode, name) : REAL(openat)(at, path, flags, mode);
}

static mode_t mode_argument(int flags, va_list rest) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;
}

#define OPEN_BODY(at) \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = mode_argument(flags, rest); \
    va_end(rest); \
    return open_any(at, path, flags, mode)

EXPORT int open(const char *path, int flags, ...) { OPEN_BODY(AT_FDCWD); }
EXPORT int open64(const char *path, int flags, ...) { OPEN_BODY(AT_FDCWD); }
EXPORT int openat(int at, const char *path, int flags, ...) { OPEN_BODY(at); }
EXPORT int openat64(int at, const char *path, int flags, ...) { OPEN_BODY(at); }
EXPORT int __open_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
EXPORT int __open64_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
EXPORT int __openat_2(int at, const char *path, int flags) { return open_any(at, path, flags, 0); }
EXPORT int __openat64_2(int at, const char *path, int flags) { return open_any(at, path, flags, 0); }
EXPORT int creat(const char *path, mode_t mode) { return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
EXPORT int creat64(const char *path, mode_t mode) { return creat(path, mode); }

EXPORT FILE *fopen(const char *path, const char *mode) {
    begin();
    char buffer[PATH_MAX];
    if (recorded(AT_FDCWD, path, buffer) && strpbrk(mode, "wa+")) refuse("fopen for writing", path);
    return REAL(fopen)(path, mode);
}
EXPORT FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }

EXPORT int close(int file) {
    begin();
    if (!handle_of(file)) return REAL(close)(file);
    pthread_mutex_lock(&lock);
    handles[file] = 0;
    int result = REAL(close)(file);
    pthread_mutex_unlock(&lock);
    return result;
}

static int copied(int from, int to) {
    if (to >= HANDLES_MAX && handle_of(from)) refuse("a descriptor beyond the table", "a copy");
    if (to >= 0 && to < HANDLES_MAX) handles[to] = handle_of(from);
    return to;
}

EXPORT int dup(int file) { return begin(), copied(file, REAL(dup)(file)); }
EXPORT int dup2(int file, int to) { return begin(), copied(file, REAL(dup2)(file, to)); }
EXPORT int dup3(int file, int to, int flags) { return begin(), copied(file, REAL(dup3)(file, to, flags)); }

EXPORT int fcntl(int file, int command, ...) {
    begin();
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    int result = REAL(fcntl)(file, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) copied(file, result);
    return result;
}
EXPORT int fcntl64(int file, int command, ...) {
    va_list rest;
    va_start(rest, command);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    return fcntl(file, command, argument);
}

/* ---- writing ---- */

static size_t size_of(const struct iovec *data, int count) {
    size_t total = 0;
    for (int part = 0; part < count; part++) total += data[part].iov_len;
    return total;
}

/* Where the next write without an offset goes. */
static off_t position_of(int file) {
    struct stat status;
    if (!(REAL(fcntl)(file, F_GETFL) & O_APPEND)) return lseek(file, 0, SEEK_CUR);
    return fstat(file, &status) == 0 ? status.st_size : -1;
}

/* Writes at `offset`, or where the file stands if it is negative. */
static ssize_t write_recorded(int file, const struct iovec *data, int count, off_t offset) {
    pthread_mutex_lock(&lock);
    int shortened = 0;
    ssize_t written = -1;
    if (!fails(FAULT_WRITE, &shortened)) {
        if (offset >= 0 && REAL(fcntl)(file, F_GETFL) & O_APPEND) refuse("pwrite with O_APPEND", "an open file");
        off_t at = offset < 0 ? position_of(file) : offset;
        struct iovec half = data[0];
        if (shortened && size_of(data, count) > 1) {
            half.iov_len = half.iov_len > 1 ? half.iov_len / 2 : half.iov_len;
            data = &half;
            count = 1;
        }
        written = offset < 0 ? REAL(writev)(file, data, count) : REAL(pwritev)(file, data, count, offset);
        if (written > 0) put(WRITE, 0, handle_of(file), at, 0, "", "", data, count, written);
    }
    pthread_mutex_unlock(&lock);
    return written;
}

EXPORT ssize_t write(int file, const void *bytes, size_t size) {
    begin();
    struct iovec data = {(void *)bytes, size};
    if (handle_of(file)) return write_recorded(file, &data, 1, -1);
    note_mark(&data, 1);
    return REAL(write)(file, bytes, size);
}
EXPORT ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset) {
    begin();
    struct iovec data = {(void *)bytes, size};
    return handle_of(file) ? write_recorded(file, &data, 1, offset) : REAL(pwrite)(file, bytes, size, offset);
}
EXPORT ssize_t pwrite64(int file, const void *bytes, size_t size, off_t offset) {
    return pwrite(file, bytes, size, offset);
}
EXPORT ssize_t writev(int file, const struct iovec *data, int count) {
    begin();
    if (handle_of(file)) return write_recorded(file, data, count, -1);
    note_mark(data, count);
    return REAL(writev)(file, data, count);
}
EXPORT ssize_t pwritev(int file, const struct iovec *data, int count, off_t offset) {
    begin();
    return handle_of(file) ? write_recorded(file, data, count, offset) : REAL(pwritev)(file, data, count, offset);
}
EXPORT ssize_t pwritev64(int file, const struct iovec *data, int count, off_t offset) {
    return pwritev(file, data, count, offset);
}
EXPORT ssize_t pwritev2(int file, const struct iovec *data, int count, off_t offset, int flags) {
    begin();
    if (handle_of(file)) refuse("pwritev2", "an open file");
    return REAL(pwritev2)(file, data, count, offset, flags);
}
EXPORT ssize_t pwritev64v2(int file, const struct iovec *data, int count, off_t offset, int flags) {
    return pwritev2(file, data, count, offset, flags);
}
EXPORT ssize_t send(int socket, const void *bytes, size_t size, int flags) {
    begin();
    struct iovec data = {(void *)bytes, size};
    note_mark(&data, 1);
    return REAL(send)(socket, bytes, size, flags);
}
EXPORT ssize_t sendto(int socket, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    begin();
    struct iovec data = {(void *)bytes, size};
    note_mark(&data, 1);
    return REAL(sendto)(socket, bytes, size, flags, to, length);
}
EXPORT ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
    begin();
    note_mark(message->msg_iov, message->msg_iovlen);
    return REAL(sendmsg)(socket, message, flags);
}

EXPORT int ftruncate(int file, off_t length) {
    begin();
    if (!handle_of(file)) return REAL(ftruncate)(file, length);
    pthread_mutex_lock(&lock);
    int result = fails(FAULT_TRUNCATE, NULL) ? -1 : REAL(ftruncate)(file, length);
    if (result == 0) put(TRUNCATE, 0, handle_of(file), 0, length, "", "", NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
EXPORT int ftruncate64(int file, off_t length) { return ftruncate(file, length); }

EXPORT int fallocate(int file, int mode, off_t offset, off_t length) {
    begin();
    if (!handle_of(file)) return REAL(fallocate)(file, mode, offset, length);
    /* Freeing space beyond the end changes no content. */
    struct stat status;
    int is_behind = fstat(file, &status) == 0 && offset >= status.st_size;
    int is_given_back = mode == (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) && is_behind;
    if (mode & ~FALLOC_FL_KEEP_SIZE && !is_given_back) refuse("fallocate with this mode", "an open file");
    pthread_mutex_lock(&lock);
    int result = fails(FAULT_ALLOCATE, NULL) ? -1 : REAL(fallocate)(file, mode, offset, length);
    if (result == 0 && !(mode & FALLOC_FL_KEEP_SIZE))
        put(ALLOCATE, 0, handle_of(file), 0, offset + length, "", "", NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    return result;
}
EXPORT int fallocate64(int file, int mode, off_t offset, off_t length) { return fallocate(file, mode, offset, length); }

/* ---- syncing. sync_file_range is left alone: it promises nothing. ---- */

static int sync_recorded(int file, int (*sync)(int)) {
    while (control && __atomic_load_n(&control->hold_syncs, __ATOMIC_SEQ_CST)) {
        __atomic_fetch_add(&control->held_syncs, 1, __ATOMIC_SEQ_CST);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        __atomic_fetch_sub(&control->held_syncs, 1, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_lock(&lock);
    uint32_t handle = handle_of(file);
    uint64_t number = ++sync_last;
    int failure = fails(FAULT_SYNC, NULL);
    int error = errno;
    if (!swallows_syncs) put(SYNC_BEGIN, 0, handle, number, 0, "", "", NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    /* Others may write meanwhile. What they write is not covered. */
    int result = failure ? -1 : swallows_syncs ? 0 : sync(file);
    if (!failure) error = errno;
    pthread_mutex_lock(&lock);
    if (!swallows_syncs) put(result == 0 ? SYNC_END : SYNC_FAILED, 0, handle, number, 0, "", "", NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

EXPORT int fsync(int file) { return begin(), handle_of(file) ? sync_recorded(file, REAL(fsync)) : REAL(fsync)(file); }
EXPORT int fdatasync(int file) {
    return begin(), handle_of(file) ? sync_recorded(file, REAL(fdatasync)) : REAL(fdatasync)(file);
}

/* ---- names ---- */

#define NAMES(fault, kind, path, other, call) \
    pthread_mutex_lock(&lock); \
    int result = fails(fault, NULL) ? -1 : (call); \
    if (result == 0) put(kind, 0, 0, 0, 0, path, other, NULL, 0, 0); \
    pthread_mutex_unlock(&lock); \
    return result

static int pair(uint16_t kind, uint64_t fault, int at, const char *path, int to, const char *other, int (*call)(int, const char *, int, const char *)) {
    char buffer[PATH_MAX], other_buffer[PATH_MAX];
    const char *name = recorded(at, path, buffer), *other_name = recorded(to, other, other_buffer);
    if (!name && !other_name) return call(at, path, to, other);
    if (!name || !other_name) refuse("moving or linking a file across the border", path);
    NAMES(fault, kind, name, other_name, call(at, path, to, other));
}

static int link_call(int at, const char *path, int to, const char *other) { return REAL(linkat)(at, path, to, other, 0); }
static int rename_call(int at, const char *path, int to, const char *other) { return REAL(renameat)(at, path, to, other); }

EXPORT int renameat(int at, const char *path, int to, const char *other) {
    return begin(), pair(RENAME, FAULT_RENAME, at, path, to, other, rename_call);
}
EXPORT int rename(const char *path, const char *other) { return renameat(AT_FDCWD, path, AT_FDCWD, other); }
EXPORT int linkat(int at, const char *path, int to, const char *other, int flags) {
    begin();
    if (flags) return REAL(linkat)(at, path, to, other, flags);
    return pair(LINK, FAULT_CREATE, at, path, to, other, link_call);
}
EXPORT int link(const char *path, const char *other) { return linkat(AT_FDCWD, path, AT_FDCWD, other, 0); }

EXPORT int unlinkat(int at, const char *path, int flags) {
    begin();
    char buffer[PATH_MAX];
    const char *name = recorded(at, path, buffer);
    if (!name) return REAL(unlinkat)(at, path, flags);
    NAMES(FAULT_UNLINK, flags & AT_REMOVEDIR ? REMOVE_DIRECTORY : UNLINK, name, "", REAL(unlinkat)(at, path, flags));
}
EXPORT int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
EXPORT int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
EXPORT int mkdirat(int at, const char *path, mode_t mode) {
    begin();
    char buffer[PATH_MAX];
    const char *name = recorded(at, path, buffer);
    if (!name) return REAL(mkdirat)(at, path, mode);
    NAMES(FAULT_DIRECTORY, MAKE_DIRECTORY, name, "", REAL(mkdirat)(at, path, mode));
}
EXPORT int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

/* ---- what is refused below the directory ---- */

static void refuse_path(const char *what, int at, const char *path) {
    char buffer[PATH_MAX];
    begin();
    if (recorded(at, path, buffer)) refuse(what, path);
}
static void refuse_file(const char *what, int file) {
    begin();
    if (handle_of(file)) refuse(what, "an open file");
}

EXPORT int renameat2(int at, const char *path, int to, const char *other, unsigned flags) {
    if (!flags) return renameat(at, path, to, other);
    refuse_path("renameat2", at, path), refuse_path("renameat2", to, other);
    return REAL(renameat2)(at, path, to, other, flags);
}
EXPORT int truncate(const char *path, off_t length) {
    return refuse_path("truncate", AT_FDCWD, path), REAL(truncate)(path, length);
}
EXPORT int truncate64(const char *path, off_t length) { return truncate(path, length); }
EXPORT int symlink(const char *target, const char *path) {
    return refuse_path("symlink", AT_FDCWD, path), REAL(symlink)(target, path);
}
EXPORT int symlinkat(const char *target, int at, const char *path) {
    return refuse_path("symlinkat", at, path), REAL(symlinkat)(target, at, path);
}
EXPORT int remove(const char *path) { return refuse_path("remove", AT_FDCWD, path), REAL(remove)(path); }
EXPORT int posix_fallocate(int file, off_t offset, off_t length) {
    return refuse_file("posix_fallocate", file), REAL(posix_fallocate)(file, offset, length);
}
EXPORT int posix_fallocate64(int file, off_t offset, off_t length) { return posix_fallocate(file, offset, length); }
EXPORT int syncfs(int file) { return refuse_file("syncfs", file), REAL(syncfs)(file); }
EXPORT void *mmap(void *at, size_t length, int protection, int flags, int file, off_t offset) {
    /* Not through the library: allocators map memory before anything else can be found. */
    if (file >= 0 && flags & MAP_SHARED && protection & PROT_WRITE) refuse_file("a shared writable mapping", file);
    return (void *)syscall(SYS_mmap, at, length, protection, flags, file, offset);
}
EXPORT void *mmap64(void *at, size_t length, int protection, int flags, int file, off_t offset) {
    return mmap(at, length, protection, flags, file, offset);
}
EXPORT ssize_t copy_file_range(int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned flags) {
    return refuse_file("copy_file_range", to), REAL(copy_file_range)(from, from_offset, to, to_offset, size, flags);
}
EXPORT ssize_t sendfile(int to, int from, off_t *offset, size_t size) {
    return refuse_file("sendfile", to), REAL(sendfile)(to, from, offset, size);
}
EXPORT ssize_t sendfile64(int to, int from, off_t *offset, size_t size) { return sendfile(to, from, offset, size); }
EXPORT ssize_t splice(int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned flags) {
    return refuse_file("splice", to), REAL(splice)(from, from_offset, to, to_offset, size, flags);
}
