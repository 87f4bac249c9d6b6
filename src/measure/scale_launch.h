// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

/// What there are more and more of.
enum class ScaleAxis { threads, procs, gpus, nodes };

std::string_view name_of(ScaleAxis axis);  // "threads", as the option is called
std::string_view unit_of(ScaleAxis axis);  // "thread", one of them

/// The command for `n`: {n} replaced wherever it stands. Where it stands nowhere, torchrun and
/// mpirun are given the number of processes or GPUs, and srun that of nodes, before a command that
/// does not begin with it. Throws Error(usage) where such a command names a number of its own.
std::vector<std::string> command_at(const std::vector<std::string>& command, ScaleAxis axis,
                                    uint64_t n);

/// The variables that make libraries use `n` threads, or see `n` GPUs of `gpus` (all of them where
/// those are not known). What of several processes is one thread each unless the user says more.
std::map<std::string, std::string> environment_at(const std::vector<std::string>& command,
                                                  ScaleAxis axis, uint64_t n,
                                                  const std::vector<std::string>& gpus);

/// The cores on which `n` threads or processes run: as many real ones as there are before any
/// second thread of the same. None where that many are not allowed, or for another axis.
std::vector<int> cores_at(ScaleAxis axis, uint64_t n);

/// As CUDA_VISIBLE_DEVICES names them, or where it is not set, as the driver counts; none where
/// there is no driver.
std::vector<std::string> usable_gpus();

}  // namespace stoker
