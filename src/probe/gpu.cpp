// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "probe/measurements.h"
#include "probe/stopwatch.h"

namespace stoker {
namespace {

constexpr size_t kCopied = 64UL << 20;

/// What we need of NVIDIA's driver library, which comes with every driver; the names with _v2 are
/// what its header maps the plain ones to.
struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*count)(int*) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*memory)(size_t*, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*release)(int) = nullptr;
  int (*push)(void*) = nullptr;
  int (*pop)(void**) = nullptr;
  int (*allocate)(unsigned long long*, size_t) = nullptr;
  int (*free)(unsigned long long) = nullptr;
  int (*allocate_host)(void**, size_t) = nullptr;
  int (*free_host)(void*) = nullptr;
  int (*copy)(unsigned long long, const void*, size_t) = nullptr;
  int (*synchronize)() = nullptr;

  /// False where the library is too old or something else.
  bool find(void* library) {
    const auto get = [&](const char* symbol, auto& function) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, symbol));
      return function != nullptr;
    };
    return get("cuInit", init) && get("cuDeviceGetCount", count) && get("cuDeviceGet", device) &&
           get("cuDeviceGetName", name) && get("cuDeviceTotalMem_v2", memory) &&
           get("cuDevicePrimaryCtxRetain", retain) &&
           get("cuDevicePrimaryCtxRelease_v2", release) && get("cuCtxPushCurrent_v2", push) &&
           get("cuCtxPopCurrent_v2", pop) && get("cuMemAlloc_v2", allocate) &&
           get("cuMemFree_v2", free) && get("cuMemAllocHost_v2", allocate_host) &&
           get("cuMemFreeHost", free_host) && get("cuMemcpyHtoD_v2", copy) &&
           get("cuCtxSynchronize", synchronize);
  }
};

void measure_copies(const Driver& driver, Gpu& gpu, void* context, double seconds,
                    Progress& progress) {
  unsigned long long on_device = 0;
  if (driver.allocate(&on_device, kCopied) != 0) return;
  void* pinned = nullptr;
  std::vector<char> pageable(kCopied, 1);
  if (driver.allocate_host(&pinned, kCopied) != 0) pinned = nullptr;
  if (pinned != nullptr) std::memset(pinned, 1, kCopied);
  const auto measure = [&](const char* what, const void* from) {
    const Trial trial{.threads = 1, .seconds = seconds / 2};
    Rate rate = time_trial(trial, progress, [&](unsigned, unsigned, const Slot& slot) -> uint64_t {
      if (driver.push(context) != 0) return 0;
      uint64_t done = 0;
      while (!slot.over() && driver.copy(on_device, from, kCopied) == 0) done += kCopied;
      const bool arrived = driver.synchronize() == 0;
      void* before = nullptr;
      driver.pop(&before);
      return arrived ? done : 0;
    });
    rate.what = what;
    rate.unit = "bytes";
    rate.block_bytes = kCopied;
    rate.how = "host to device, cuMemcpyHtoD";
    if (rate.repeats > 0) gpu.rates.push_back(rate);
  };
  if (pinned != nullptr) measure("pinned", pinned);
  measure("pageable", pageable.data());
  driver.free(on_device);
  if (pinned != nullptr) driver.free_host(pinned);
}

}  // namespace

void measure_gpus(Machine& machine, double seconds, Progress& progress) {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    machine.notes.emplace_back("no GPU: there is no NVIDIA driver (libcuda.so.1)");
    return;
  }
  Driver driver;
  int count = 0;
  if (!driver.find(library)) {
    machine.notes.emplace_back("no GPU: the NVIDIA driver is too old");
    return;
  }
  if (const int failed = driver.init(0); failed != 0 || driver.count(&count) != 0 || count == 0) {
    machine.notes.push_back(
        failed == 0 ? "no GPU: the NVIDIA driver shows none to this process"
                    : fmt::format("no GPU: the NVIDIA driver refuses, CUDA error {}", failed));
    return;
  }
  for (int number = 0; number < count; ++number) {
    progress.check_stop();
    Gpu gpu;
    int device = 0;
    char name[256] = "unknown";
    size_t memory = 0;
    void* context = nullptr;
    if (driver.device(&device, number) != 0) continue;
    driver.name(name, sizeof(name) - 1, device);
    driver.memory(&memory, device);
    gpu.name = name;
    gpu.memory_bytes = memory;
    if (driver.retain(&context, device) == 0 && driver.push(context) == 0) {
      measure_copies(driver, gpu, context, seconds / count, progress);
      void* before = nullptr;
      driver.pop(&before);
      driver.release(device);
    } else {
      machine.notes.push_back(fmt::format("{}: in use by somebody else, not measured", gpu.name));
    }
    machine.gpus.push_back(std::move(gpu));
  }
}

}  // namespace stoker
