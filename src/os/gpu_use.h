// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace stoker {

struct GpuUse {
  unsigned number = 0;  // as the driver counts
  std::string name, uuid;
  double busy = 0;  // share of the driver's last period in which a kernel ran
  uint64_t used_bytes = 0, all_bytes = 0;
};

/// NVIDIA's management library, loaded when this is made; without it there are no GPUs.
class GpuWatch {
 public:
  GpuWatch();
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  /// Those that `visible` (CUDA_VISIBLE_DEVICES) names, or all where it is empty.
  std::vector<GpuUse> look(const std::string& visible) const;
  /// Why there are none.
  const std::string& trouble() const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace stoker
