// SPDX-License-Identifier: Apache-2.0
//
// Loaded into a program with LD_PRELOAD: reading from a file whose path contains FAIL_READS fails
// with EIO, as on a file system that is away for a moment.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int fails(int descriptor) {
  const char *which = getenv("FAIL_READS");
  if (!which) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  if (!strstr(path, which)) return 0;
  errno = EIO;
  return 1;
}

#define READS(name, arguments, passed)                    \
  ssize_t name arguments {                                \
    static ssize_t(*real) arguments;                      \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name); \
    return fails(fd) ? -1 : real passed;                  \
  }

READS(pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at))
READS(pread64, (int fd, void *to, size_t size, off64_t at), (fd, to, size, at))
READS(preadv, (int fd, const struct iovec *to, int count, off_t at), (fd, to, count, at))
READS(preadv64, (int fd, const struct iovec *to, int count, off64_t at), (fd, to, count, at))
READS(read, (int fd, void *to, size_t size), (fd, to, size))

// The program calls pread64 this way: without glibc's point of cancellation.
long syscall(long number, ...) {
  static long (*real)(long, ...);
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "syscall");
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
  va_end(list);
  if (number == SYS_pread64 && fails((int)a[0])) return -1;
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
