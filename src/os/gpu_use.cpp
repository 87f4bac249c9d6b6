// SPDX-License-Identifier: Apache-2.0
#include "os/gpu_use.h"

#include <dlfcn.h>

#include <algorithm>
#include <string_view>

namespace stoker {
namespace {

// The few types of nvml.h that are used; the library is not there when this is built.
using Device = void*;
struct Utilization {
  unsigned gpu = 0, memory = 0;  // percent
};
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;
};
constexpr int kSuccess = 0;

bool is_visible(const std::string& visible, unsigned number, const std::string& uuid) {
  if (visible.empty()) return true;
  std::string_view rest = visible;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, end);
    if (word == std::to_string(number) || (word.starts_with("GPU-") && uuid.starts_with(word))) {
      return true;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

}  // namespace

struct GpuWatch::Library {
  void* handle = nullptr;
  std::string trouble;
  unsigned count = 0;
  int (*shutdown)() = nullptr;
  int (*device)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;

  template <typename Function>
  bool find(const char* symbol, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(handle, symbol));
    if (function == nullptr) trouble = std::string(symbol) + " is not in libnvidia-ml";
    return function != nullptr;
  }

  void load() {
    handle = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      trouble = "no libnvidia-ml.so.1: no NVIDIA driver here";
      return;
    }
    int (*init)() = nullptr;
    int (*get_count)(unsigned*) = nullptr;
    if (!find("nvmlInit_v2", init) || !find("nvmlShutdown", shutdown) ||
        !find("nvmlDeviceGetCount_v2", get_count) ||
        !find("nvmlDeviceGetHandleByIndex_v2", device) || !find("nvmlDeviceGetName", name) ||
        !find("nvmlDeviceGetUUID", uuid) || !find("nvmlDeviceGetUtilizationRates", utilization) ||
        !find("nvmlDeviceGetMemoryInfo", memory)) {
      shutdown = nullptr;
      return;
    }
    if (init() != kSuccess) {
      trouble = "the NVIDIA driver does not answer";
      shutdown = nullptr;
      return;
    }
    if (get_count(&count) != kSuccess) count = 0;
  }
};

GpuWatch::GpuWatch() : library_(std::make_unique<Library>()) { library_->load(); }

GpuWatch::~GpuWatch() {
  if (library_->shutdown != nullptr) library_->shutdown();
  if (library_->handle != nullptr) ::dlclose(library_->handle);
}

const std::string& GpuWatch::trouble() const { return library_->trouble; }

std::vector<GpuUse> GpuWatch::look(const std::string& visible) const {
  std::vector<GpuUse> uses;
  const Library& library = *library_;
  for (unsigned i = 0; i < library.count; ++i) {
    Device device = nullptr;
    if (library.device(i, &device) != kSuccess) continue;
    char text[128] = {};
    GpuUse use;
    use.number = i;
    if (library.uuid(device, text, sizeof text) == kSuccess) use.uuid = text;
    if (!is_visible(visible, i, use.uuid)) continue;
    if (library.name(device, text, sizeof text) == kSuccess) use.name = text;
    Utilization utilization;
    if (library.utilization(device, &utilization) == kSuccess) use.busy = utilization.gpu / 100.0;
    Memory memory;
    if (library.memory(device, &memory) == kSuccess) {
      use.used_bytes = memory.used;
      use.all_bytes = memory.total;
    }
    uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace stoker
