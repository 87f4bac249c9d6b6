// SPDX-License-Identifier: Apache-2.0
#include "os/pinned_memory.h"

#include <dlfcn.h>

namespace stoker {
namespace {

/// What we need of NVIDIA's driver, found when first asked for: a program that runs without a GPU
/// does not link with it.
class CudaDriver {
 public:
  CudaDriver() {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    int (*init)(unsigned) = nullptr;
    int (*retain)(void**, int) = nullptr;
    const bool found =
        find(library, "cuInit", init) && find(library, "cuDevicePrimaryCtxRetain", retain) &&
        find(library, "cuCtxPushCurrent_v2", push_) && find(library, "cuCtxPopCurrent_v2", pop_) &&
        find(library, "cuMemHostRegister_v2", register_) &&
        find(library, "cuMemHostUnregister", unregister_);
    // The context that CUDA's runtime, and so every framework, uses for the first GPU it sees.
    if (!found || init(0) != 0 || retain(&context_, 0) != 0) context_ = nullptr;
  }

  bool pin(void* data, size_t size) const {
    constexpr unsigned kForAllContexts = 1;
    return in_context([&] { return register_(data, size, kForAllContexts) == 0; });
  }
  void unpin(void* data) const {
    in_context([&] { return unregister_(data) == 0; });
  }

 private:
  template <typename Function>
  static bool find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
  }
  template <typename Work>
  bool in_context(Work work) const {
    if (context_ == nullptr || push_(context_) != 0) return false;
    const bool done = work();
    void* before = nullptr;
    pop_(&before);
    return done;
  }

  void* context_ = nullptr;
  int (*push_)(void*) = nullptr;
  int (*pop_)(void**) = nullptr;
  int (*register_)(void*, size_t, unsigned) = nullptr;
  int (*unregister_)(void*) = nullptr;
};

const CudaDriver& driver() {
  static const CudaDriver driver;
  return driver;
}

}  // namespace

bool pin_memory(void* data, size_t size) { return driver().pin(data, size); }
void unpin_memory(void* data) { driver().unpin(data); }

}  // namespace stoker
