// SPDX-License-Identifier: Apache-2.0
// Shows a directory as if it lay on the shared storage of a busy cluster: every request takes a
// while, all of them together get so many bytes a second, and MOUNTPOINT/.operations says at any
// time, as JSON, what was asked for.
//
//     shared_storage [--metadata-ms 1] [--request-ms 0.5] [--rate 300M] [--remember-s 1]
//                    DIRECTORY MOUNTPOINT
//
// Stays in the foreground; unmounts when it is told to end (SIGTERM, Ctrl-C) or when its parent
// ends. Needs no root where fusermount3 is installed. It is there to be measured, not to keep what
// matters: sync only takes its time.
//
// What the figures stand for. On an idle Lustre one thread stats some 2,000 files a second and
// creates 500 (mdtest by a vendor): 0.5 to 2 ms each. 1 ms is a lookup or an open with other users
// at work; 0.5 ms a request to a data server; 300 MB/s what one client of many gets. --rate 0 is no
// limit.
//
// What is cached. As with Lustre and NFS the client, here the kernel, keeps data that it has read
// and reads ahead; what is written it gathers, and sends when a file is closed or synced, or
// earlier, up to 1 MiB a request. Names and attributes it believes for --remember-s (NFS: 3 s and
// more; Lustre: until a lock is called back). Each open() is a request, as with both, and so is
// each name that `ls -l` looks at, which both may fetch ahead. Names of one directory are looked up
// one behind the other: libfuse 3.14 does not tell the kernel that more is allowed. DIRECTORY must
// not change behind its back meanwhile: who writes it is the client alone.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "storage.h"

namespace {

using stoker::Settings;
using stoker::Storage;

[[noreturn]] void fail(const std::string& message, int status) {
  (void)std::fprintf(stderr, "shared_storage: %s\n", message.c_str());
  std::exit(status);
}

double number(std::string_view option, const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= 0 && value <= 60'000)) {
    fail(std::string(option) + " " + text + ": should be a number, 0 or more", 2);
  }
  return value;
}

/// Takes the options out of `words`, leaves the two directories.
Settings settings_of(std::vector<const char*>& words) {
  Settings settings;
  while (words.size() > 1 && std::strncmp(words[0], "--", 2) == 0) {
    const std::string_view option = words[0];
    const char* text = words[1];
    if (option == "--metadata-ms") {
      settings.metadata = decltype(settings.metadata)(number(option, text));
    } else if (option == "--request-ms") {
      settings.request = decltype(settings.request)(number(option, text));
    } else if (option == "--remember-s") {
      settings.remember_s = number(option, text);
    } else if (const auto rate = stoker::parse_size(text); option == "--rate" && rate) {
      settings.bytes_per_s = *rate;
    } else {
      fail(std::string(option) + " " + text + ": not known, or no size", 2);
    }
    words.erase(words.begin(), words.begin() + 2);
  }
  if (words.size() != 2) fail("wants two directories: what to show, and where", 2);
  return settings;
}

void on_init(void*, fuse_conn_info* connection) {
  connection->want |= connection->capable & FUSE_CAP_WRITEBACK_CACHE;
  connection->max_write = stoker::kLargestRequest;
  connection->max_readahead = stoker::kLargestRequest;
  connection->max_background = stoker::kInFlight;
}

/// Every file that the kernel knows has a descriptor.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Answers requests until it is told to end, or somebody unmounts it.
int serve(Storage& storage, const char* program, const char* mountpoint) {
  fuse_lowlevel_ops table{};
  table.init = on_init;
  stoker::add_names(table);
  stoker::add_data(table);
  std::string name = program;
  std::string option = "-o";
  std::string options = "fsname=shared_storage,subtype=shared_storage,default_permissions";
  std::array<char*, 3> words = {name.data(), option.data(), options.data()};
  fuse_args arguments = FUSE_ARGS_INIT(static_cast<int>(words.size()), words.data());
  fuse_session* session = fuse_session_new(&arguments, &table, sizeof(table), &storage);
  fuse_opt_free_args(&arguments);
  if (session == nullptr || fuse_set_signal_handlers(session) != 0) return 1;
  int status = fuse_session_mount(session, mountpoint) == 0 ? 0 : 1;
  if (status == 0) {
    fuse_loop_config* config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_max_threads(config, stoker::kInFlight);
    // A signal is what ends it: the way out, no failure.
    if (fuse_session_loop_mt(session, config) < 0) status = 1;
    fuse_loop_cfg_destroy(config);
    fuse_session_unmount(session);
  }
  fuse_remove_signal_handlers(session);
  fuse_session_destroy(session);
  return status;
}

}  // namespace

int main(int count, char** given) {
  std::vector<const char*> words(given + 1, given + count);
  Storage storage(settings_of(words));
  const pid_t parent = ::getppid();
  // Nothing stays mounted that nobody answers for.
  if (::prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || ::getppid() != parent) return 1;
  storage.root.descriptor = ::open(words[0], O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (storage.root.descriptor < 0) fail(std::string(words[0]) + ": " + std::strerror(errno), 1);
  allow_many_files();
  ::umask(0);  // the kernel has applied that of whoever creates a file
  return serve(storage, given[0], words[1]);
}
