// SPDX-License-Identifier: Apache-2.0
// A plain loop over small files, for bench/probe.py: creates files of 16 KiB in a directory, then for a while each
// stat(), open() and close(), and open(), read() and close(). Prints "what per-second" lines.
//
//     plain_files DIRECTORY FILES SECONDS

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kBytes = 16384 };
static char buffer[kBytes];

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void check(int good, const char* what) {
  if (good) return;
  perror(what);
  exit(1);
}

static void create(const char* path) {
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  check(file >= 0 && write(file, buffer, kBytes) == kBytes, path);
  close(file);
}

static void look(const char* path) {
  struct stat info;
  check(stat(path, &info) == 0, path);
}

static void open_close(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  check(file >= 0, path);
  close(file);
}

static void read_all(const char* path) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  check(file >= 0 && read(file, buffer, kBytes) == kBytes, path);
  close(file);
}

int main(int count, char** words) {
  if (count != 4) return 2;
  const int files = atoi(words[2]);
  const double seconds = atof(words[3]);
  char(*paths)[512] = calloc((size_t)files, sizeof(*paths));
  check(paths != NULL && chdir(words[1]) == 0, words[1]);
  for (int i = 0; i < files; ++i) snprintf(paths[i], sizeof(paths[i]), "%s/%06d", words[1], i);

  double begin = now();
  for (int i = 0; i < files; ++i) create(paths[i]);
  printf("create %f\n", files / (now() - begin));

  void (*const operations[])(const char*) = {look, open_close, read_all};
  const char* const names[] = {"stat", "open", "small_read"};
  for (int which = 0; which < 3; ++which) {
    long done = 0;
    for (begin = now(); now() - begin < seconds; ++done) operations[which](paths[done % files]);
    printf("%s %f\n", names[which], (double)done / (now() - begin));
  }
  for (int i = 0; i < files; ++i) unlink(paths[i]);
  free(paths);
  return 0;
}
