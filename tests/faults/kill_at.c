// SPDX-License-Identifier: Apache-2.0
//
// Loaded into a program with LD_PRELOAD: counts the calls with which a process changes the file
// system, and strikes at the n-th of them.
//
//   KILL_AT=n        at which call, from 1
//   KILL_HOW=before  SIGKILL instead of the call (default)
//           =after   SIGKILL when the call is done
//           =half    SIGKILL after half of the bytes of a write; "before" for other calls
//           =SIGINT, SIGTERM   that signal to the process, then the call
//           =ENOSPC, EIO       the call and all later ones that need space or the disk fail so
//   KILL_LEAST=n     only write() of so many bytes counts: how many other calls there are depends on the machine
//   KILL_COUNT=file  receives the number of calls when the process ends by itself
//
// Output to the terminal (descriptors 0 to 2) does not count.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;
static long strike_at;
static size_t least;
static const char *how;
static int failing;  // the errno with which calls fail

__attribute__((constructor)) static void begin(void) {
  const char *at = getenv("KILL_AT");
  strike_at = at ? atol(at) : 0;
  const char *bytes = getenv("KILL_LEAST");
  least = bytes ? (size_t)atol(bytes) : 0;
  how = getenv("KILL_HOW");
  if (!how) how = "before";
  if (!strcmp(how, "ENOSPC")) failing = ENOSPC;
  if (!strcmp(how, "EIO")) failing = EIO;
}

__attribute__((destructor)) static void end(void) {
  const char *path = getenv("KILL_COUNT");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) return;
  fprintf(file, "%ld\n", atomic_load(&calls));
  fclose(file);
}

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

// Counts a call. Returns 1 where it is the one after which to die, 2 where only half of it is to
// be done, -1 where it is to fail with errno set.
static int strike(int can_fail) {
  long number = atomic_fetch_add(&calls, 1) + 1;
  if (failing) {
    if (!strike_at || number < strike_at || !can_fail) return 0;
    errno = failing;
    return -1;
  }
  if (number != strike_at) return 0;
  if (!strcmp(how, "after")) return 1;
  if (!strcmp(how, "half")) return 2;
  if (!strcmp(how, "SIGINT")) return kill(getpid(), SIGINT), 0;
  if (!strcmp(how, "SIGTERM")) return kill(getpid(), SIGTERM), 0;
  die();
  return 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define CALL(name, can_fail, ...)             \
  do {                                        \
    int struck = least > 0 ? 0 : strike(can_fail); \
    if (struck < 0) return -1;                \
    if (struck == 2) die();                   \
    __auto_type result = REAL(name)(__VA_ARGS__); \
    if (struck == 1) die();                   \
    return result;                            \
  } while (0)

static ssize_t half_of(int fd, const struct iovec *parts, int count, off_t offset) {
  size_t total = 0;
  for (int i = 0; i < count; i++) total += parts[i].iov_len;
  total /= 2;
  for (int i = 0; i < count && total > 0; i++) {
    size_t size = parts[i].iov_len < total ? parts[i].iov_len : total;
    ssize_t done = offset < 0 ? REAL(write)(fd, parts[i].iov_base, size)
                              : REAL(pwrite)(fd, parts[i].iov_base, size, offset);
    if (done < 0) break;
    if (offset >= 0) offset += done;
    total -= (size_t)done;
  }
  die();
  return -1;
}

ssize_t write(int fd, const void *data, size_t size) {
  if (fd <= 2 || size < least) return REAL(write)(fd, data, size);
  int struck = strike(1);
  if (struck < 0) return -1;
  struct iovec part = {(void *)data, size};
  if (struck == 2) return half_of(fd, &part, 1, -1);
  ssize_t result = REAL(write)(fd, data, size);
  if (struck == 1) die();
  return result;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  if (fd <= 2) return REAL(writev)(fd, parts, count);
  int struck = strike(1);
  if (struck < 0) return -1;
  if (struck == 2) return half_of(fd, parts, count, -1);
  ssize_t result = REAL(writev)(fd, parts, count);
  if (struck == 1) die();
  return result;
}

#define POSITIONED_WRITE(name)                                            \
  ssize_t name(int fd, const void *data, size_t size, off_t offset) {     \
    int struck = strike(1);                                               \
    if (struck < 0) return -1;                                            \
    struct iovec part = {(void *)data, size};                             \
    if (struck == 2) return half_of(fd, &part, 1, offset);                \
    ssize_t result = REAL(name)(fd, data, size, offset);                  \
    if (struck == 1) die();                                               \
    return result;                                                        \
  }
POSITIONED_WRITE(pwrite)
POSITIONED_WRITE(pwrite64)

#define POSITIONED_WRITEV(name)                                                    \
  ssize_t name(int fd, const struct iovec *parts, int count, off_t offset) {       \
    int struck = strike(1);                                                        \
    if (struck < 0) return -1;                                                     \
    if (struck == 2) return half_of(fd, parts, count, offset);                     \
    ssize_t result = REAL(name)(fd, parts, count, offset);                         \
    if (struck == 1) die();                                                        \
    return result;                                                                 \
  }
POSITIONED_WRITEV(pwritev)
POSITIONED_WRITEV(pwritev64)

ssize_t copy_file_range(int in, off_t *in_at, int out, off_t *out_at, size_t size, unsigned flags) {
  CALL(copy_file_range, 1, in, in_at, out, out_at, size, flags);
}
int fsync(int fd) { CALL(fsync, 1, fd); }
int fdatasync(int fd) { CALL(fdatasync, 1, fd); }
int syncfs(int fd) { CALL(syncfs, 1, fd); }
int rename(const char *from, const char *to) { CALL(rename, 0, from, to); }
int renameat(int a, const char *from, int b, const char *to) { CALL(renameat, 0, a, from, b, to); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  CALL(renameat2, 0, a, from, b, to, flags);
}
int unlink(const char *path) { CALL(unlink, 0, path); }
int unlinkat(int fd, const char *path, int flags) { CALL(unlinkat, 0, fd, path, flags); }
int rmdir(const char *path) { CALL(rmdir, 0, path); }
int mkdir(const char *path, mode_t mode) { CALL(mkdir, 0, path, mode); }
int mkdirat(int fd, const char *path, mode_t mode) { CALL(mkdirat, 0, fd, path, mode); }
int symlinkat(const char *to, int fd, const char *path) { CALL(symlinkat, 0, to, fd, path); }
int fchmod(int fd, mode_t mode) { CALL(fchmod, 0, fd, mode); }
int ftruncate(int fd, off_t size) { CALL(ftruncate, 1, fd, size); }
int ftruncate64(int fd, off64_t size) { CALL(ftruncate64, 1, fd, size); }
int fallocate(int fd, int mode, off_t offset, off_t size) { CALL(fallocate, 1, fd, mode, offset, size); }
int fallocate64(int fd, int mode, off64_t offset, off64_t size) {
  CALL(fallocate64, 1, fd, mode, offset, size);
}

#define MODE_OF(flags)                         \
  mode_t mode = 0;                             \
  if ((flags) & (O_CREAT | O_TMPFILE)) {       \
    va_list arguments;                         \
    va_start(arguments, flags);                \
    mode = va_arg(arguments, mode_t);          \
    va_end(arguments);                         \
  }

#define OPEN(name)                                               \
  int name(const char *path, int flags, ...) {                   \
    MODE_OF(flags)                                               \
    if (!(flags & O_CREAT)) return REAL(name)(path, flags, mode); \
    CALL(name, 0, path, flags, mode);                            \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                      \
  int name(int directory, const char *path, int flags, ...) {             \
    MODE_OF(flags)                                                        \
    if (!(flags & O_CREAT)) return REAL(name)(directory, path, flags, mode); \
    CALL(name, 0, directory, path, flags, mode);                          \
  }
OPENAT(openat)
OPENAT(openat64)
