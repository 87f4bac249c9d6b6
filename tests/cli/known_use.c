// SPDX-License-Identifier: Apache-2.0
// Uses what its arguments say, and prints what it really used: CPU seconds by its own clock.
//   known_use MEGABYTES THREADS MILLISECONDS FILE READS CHILDREN
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double cpu(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

static double limit;

static void* spin(void* unused) {
  const double begin = cpu(CLOCK_THREAD_CPUTIME_ID);
  while (cpu(CLOCK_THREAD_CPUTIME_ID) - begin < limit) {
  }
  return unused;
}

int main(int count, char** words) {
  if (count != 7) return 2;
  const size_t bytes = (size_t)atol(words[1]) << 20;
  const int threads = atoi(words[2]);
  limit = atof(words[3]) * 1e-3;
  char* memory = malloc(bytes + 1);
  for (size_t i = 0; i < bytes; i += 512) memory[i] = (char)i;
  pthread_t all[64];
  for (int i = 0; i < threads; ++i) pthread_create(&all[i], NULL, spin, NULL);
  for (int i = 0; i < threads; ++i) pthread_join(all[i], NULL);
  long long read_bytes = 0;
  static char piece[1 << 20];
  for (int i = 0; i < atoi(words[5]); ++i) {
    const int file = open(words[4], O_RDONLY);
    for (ssize_t got; (got = read(file, piece, sizeof piece)) > 0;) read_bytes += got;
    close(file);
  }
  for (int i = 0; i < atoi(words[6]); ++i) {
    if (fork() == 0) {
      spin(NULL);
      _exit(0);
    }
    wait(NULL);
  }
  struct rusage self, children;
  getrusage(RUSAGE_SELF, &self);
  getrusage(RUSAGE_CHILDREN, &children);
  const double used = self.ru_utime.tv_sec + self.ru_stime.tv_sec + children.ru_utime.tv_sec +
                      children.ru_stime.tv_sec +
                      1e-6 * (self.ru_utime.tv_usec + self.ru_stime.tv_usec +
                              children.ru_utime.tv_usec + children.ru_stime.tv_usec);
  printf("cpu %.6f read %lld memory %zu\n", used, read_bytes, bytes);
  return memory[bytes / 2] == 3 ? 3 : 0;
}
