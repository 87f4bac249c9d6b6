// SPDX-License-Identifier: Apache-2.0
#include "os/slurm_answer.h"

#include <array>
#include <string_view>

namespace stoker {
namespace {

// What changes which jobs are shown, in which order and form. A job that a filter hides would be
// taken for one that has ended.
constexpr std::array<std::string_view, 14> kUnset = {
    "SACCT_FORMAT",       "SQUEUE_ACCOUNT", "SQUEUE_ARRAY",     "SQUEUE_FORMAT",   "SQUEUE_FORMAT2",
    "SQUEUE_LICENSES",    "SQUEUE_NAMES",   "SQUEUE_PARTITION", "SQUEUE_PRIORITY", "SQUEUE_QOS",
    "SQUEUE_RESERVATION", "SQUEUE_SORT",    "SQUEUE_STATES",    "SQUEUE_USERS"};

}  // namespace

CommandAnswer slurm_answer(const std::vector<std::string>& words, double seconds) {
  std::vector<std::string> all = {"env"};
  for (const std::string_view name : kUnset) {
    all.emplace_back("-u");
    all.emplace_back(name);
  }
  for (const char* set : {"LC_ALL=C", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0"}) {
    all.emplace_back(set);
  }
  all.insert(all.end(), words.begin(), words.end());
  CommandAnswer answer = command_answer(all, seconds);
  constexpr int kNotFound = 127;  // env says so: it is always found itself
  if (answer.status == kNotFound) answer.found = false;
  return answer;
}

}  // namespace stoker
