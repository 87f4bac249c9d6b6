// SPDX-License-Identifier: Apache-2.0
// Makes reads of chosen files fail or wait, or stops the process at the first of them.
//   FAULT_NAME   part of the path of the files that are meant
//   FAULT_WHILE  reads fail with EIO as long as this file exists
//   FAULT_HOLD   reads wait as long as this file exists
//   FAULT_STOP   the process stops itself (SIGSTOP) once; this file is made first, and nothing happens where it exists
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int meant(int file) {
  const char* name = getenv("FAULT_NAME");
  char link[64];
  char path[4096];
  if (!name) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return strstr(path, name) != NULL;
}

static int struck(int file) {
  int before = errno;
  if (!meant(file)) {
    errno = before;
    return 0;
  }
  const char* stop = getenv("FAULT_STOP");
  if (stop) {
    int made = (int)syscall(SYS_openat, AT_FDCWD, stop, O_CREAT | O_EXCL | O_WRONLY, 0666);
    if (made >= 0) {
      close(made);
      kill(getpid(), SIGSTOP);
    }
  }
  const char* hold = getenv("FAULT_HOLD");
  while (hold && access(hold, F_OK) == 0) usleep(20000);
  const char* flag = getenv("FAULT_WHILE");
  if (flag && access(flag, F_OK) == 0) {
    errno = EIO;
    return 1;
  }
  errno = before;
  return 0;
}

#define NEXT(name, type) \
  static type next;      \
  if (!next) next = (type)dlsym(RTLD_NEXT, name)

typedef ssize_t (*read_t)(int, void*, size_t);
typedef ssize_t (*pread_t)(int, void*, size_t, off_t);
typedef ssize_t (*readv_t)(int, const struct iovec*, int);
typedef ssize_t (*preadv_t)(int, const struct iovec*, int, off_t);
typedef ssize_t (*preadv2_t)(int, const struct iovec*, int, off_t, int);
typedef void* (*mmap_t)(void*, size_t, int, int, int, off_t);
typedef ssize_t (*copy_t)(int, off_t*, int, off_t*, size_t, unsigned);

typedef int (*openat_t)(int, const char*, int, ...);

// Reads may bypass this library (io_submit, io_uring): opening the file fails, or stops, as well.
static int checked(int file) {
  if (file < 0 || !struck(file)) return file;
  close(file);
  errno = EIO;
  return -1;
}
static int open_checked(openat_t next, int directory, const char* path, int flags, mode_t mode) {
  return checked(next(directory, path, flags, mode));
}
#define MODE                                 \
  mode_t mode = 0;                           \
  if (flags & (O_CREAT | __O_TMPFILE)) {     \
    va_list list;                            \
    va_start(list, flags);                   \
    mode = va_arg(list, mode_t);             \
    va_end(list);                            \
  }
int openat(int d, const char* path, int flags, ...) {
  MODE
  NEXT("openat", openat_t);
  return open_checked(next, d, path, flags, mode);
}
int openat64(int d, const char* path, int flags, ...) {
  MODE
  NEXT("openat64", openat_t);
  return open_checked(next, d, path, flags, mode);
}
int open(const char* path, int flags, ...) {
  MODE
  NEXT("openat", openat_t);
  return open_checked(next, AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  MODE
  NEXT("openat64", openat_t);
  return open_checked(next, AT_FDCWD, path, flags, mode);
}
typedef long (*syscall_t)(long, ...);
long syscall(long number, ...) {
  NEXT("syscall", syscall_t);
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  long result = next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  return number == SYS_openat2 ? checked((int)result) : result;
}
ssize_t read(int f, void* b, size_t n) {
  NEXT("read", read_t);
  return struck(f) ? -1 : next(f, b, n);
}
ssize_t pread(int f, void* b, size_t n, off_t o) {
  NEXT("pread", pread_t);
  return struck(f) ? -1 : next(f, b, n, o);
}
ssize_t pread64(int f, void* b, size_t n, off_t o) {
  NEXT("pread64", pread_t);
  return struck(f) ? -1 : next(f, b, n, o);
}
ssize_t readv(int f, const struct iovec* v, int n) {
  NEXT("readv", readv_t);
  return struck(f) ? -1 : next(f, v, n);
}
ssize_t preadv(int f, const struct iovec* v, int n, off_t o) {
  NEXT("preadv", preadv_t);
  return struck(f) ? -1 : next(f, v, n, o);
}
ssize_t preadv64(int f, const struct iovec* v, int n, off_t o) {
  NEXT("preadv64", preadv_t);
  return struck(f) ? -1 : next(f, v, n, o);
}
ssize_t preadv2(int f, const struct iovec* v, int n, off_t o, int x) {
  NEXT("preadv2", preadv2_t);
  return struck(f) ? -1 : next(f, v, n, o, x);
}
ssize_t preadv64v2(int f, const struct iovec* v, int n, off_t o, int x) {
  NEXT("preadv64v2", preadv2_t);
  return struck(f) ? -1 : next(f, v, n, o, x);
}
ssize_t copy_file_range(int f, off_t* o, int t, off_t* p, size_t n, unsigned x) {
  NEXT("copy_file_range", copy_t);
  return struck(f) ? -1 : next(f, o, t, p, n, x);
}
void* mmap(void* a, size_t n, int p, int x, int f, off_t o) {
  NEXT("mmap", mmap_t);
  return f >= 0 && struck(f) ? MAP_FAILED : next(a, n, p, x, f, o);
}
void* mmap64(void* a, size_t n, int p, int x, int f, off_t o) {
  NEXT("mmap64", mmap_t);
  return f >= 0 && struck(f) ? MAP_FAILED : next(a, n, p, x, f, o);
}
