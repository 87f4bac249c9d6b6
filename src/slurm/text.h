// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// How Slurm's commands write things. All of it may be anything: what does not look as expected is
// nothing, never an error.

/// Between the columns: no name that a person types has it, and `|` may be in any.
inline constexpr char kSlurmDelimiter = '\x1f';

/// "[D-]HH:MM:SS[.mmm]", "MM:SS[.mmm]"; infinity for UNLIMITED.
std::optional<double> parse_slurm_duration(std::string_view text);
/// Bytes from "1536000", "4096M", "0.03M", "2Gc", "4000Mn" (per core, per node: the letter is
/// passed over); units are binary, as Slurm's are.
std::optional<uint64_t> parse_slurm_memory(std::string_view text);
/// Seconds since 1970 from those, or from "2026-11-16T05:49:14" in this machine's time zone.
std::optional<int64_t> parse_slurm_time(std::string_view text);
/// "cpu=4,mem=4096M,gres/gpu=2" by name.
std::map<std::string, std::string, std::less<>> parse_tres(std::string_view text);
/// The names in "n[1-3,07],gpu1"; no more than `most`, for a list may say a[1-999999999].
std::vector<std::string> expand_nodes(std::string_view text, size_t most = 4096);
/// A duration as --time takes it: "1-02:30:00", "00:45:00".
std::string slurm_duration(uint64_t seconds);

/// A size in the units of Slurm, which are binary: "4 GiB" is what --mem=4G asks for.
std::string slurm_size(uint64_t bytes);
/// How many tasks of an array an id stands for: 1 for "123_4", 6 for "123_[5-9,12%2]".
uint64_t array_tasks(std::string_view id);

/// Lines of columns that the first line names.
class SlurmTable {
 public:
  /// Rows that have another number of cells than there are names are left out and counted.
  explicit SlurmTable(std::string_view text);

  size_t rows() const { return rows_.size(); }
  size_t left_out() const { return left_out_; }
  /// Empty where there is no such column.
  std::string_view cell(size_t row, std::string_view column) const;

 private:
  std::map<std::string, size_t, std::less<>> columns_;
  std::vector<std::vector<std::string>> rows_;
  size_t left_out_ = 0;
};

}  // namespace stoker
