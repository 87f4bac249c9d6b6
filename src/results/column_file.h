// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"

namespace stoker {

// Rows of named columns, appended block by block while something runs; whoever is killed loses at
// most the block that was not written yet. The layout is described in docs/formats/run.md; the
// hook, which is plain Python, writes the same.
//
//   file    "stoker-columns 1\n", then blocks
//   block   magic "SBLK", u32 length of the description, u64 length of the rows, description
//           (JSON), rows (column after column), u32 CRC-32 of all that
//
// Numbers are little-endian. CRC-32 and not CRC-32C, because Python has it in its library.

/// Where a file could not be understood, and why.
struct ColumnDamage {
  uint64_t offset = 0;
  std::string cause;
};

/// All blocks of a file. A column that a block lacks is filled with 0 there.
struct ColumnTable {
  /// What the blocks say about themselves, merged in their order: later ones add or replace.
  std::map<std::string, std::string> about;  // values as JSON text
  std::map<std::string, std::vector<int64_t>> integers;
  std::map<std::string, std::vector<double>> reals;
  uint64_t rows = 0;
  std::vector<ColumnDamage> damage;
};

/// Throws Error(corrupt) where it is no such file or one of another version; what is damaged or cut
/// off behind the beginning is left out and named.
ColumnTable read_columns(const std::string& path);
/// The blocks from `offset` on that are whole now, of a file that still grows; moves `offset`
/// behind them. 0 is its beginning.
ColumnTable read_new_columns(const std::string& path, uint64_t& offset);

/// Writes one process's file. Throws nothing after the beginning: measuring must not stop what is
/// measured. failure() says why nothing is written any more.
class ColumnWriter {
 public:
  /// Throws Error(io) where the file cannot be made.
  ColumnWriter(const std::string& path, std::vector<std::string> integers,
               std::vector<std::string> reals);
  ~ColumnWriter();
  ColumnWriter(const ColumnWriter&) = delete;
  ColumnWriter& operator=(const ColumnWriter&) = delete;

  /// As many values as there are columns of each kind, in their order.
  void add(const int64_t* integers, const double* reals);
  /// Goes into the next block's description.
  void describe(const std::string& name, const Json& value);
  void flush();
  const std::string& failure() const { return failure_; }

 private:
  int descriptor_ = -1;
  std::vector<std::string> integer_names_, real_names_;
  std::vector<std::vector<int64_t>> integers_;
  std::vector<std::vector<double>> reals_;
  std::map<std::string, std::string> about_;
  std::string failure_;
};

}  // namespace stoker
