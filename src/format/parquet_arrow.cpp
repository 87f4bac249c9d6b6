// SPDX-License-Identifier: Apache-2.0
#include "format/parquet_arrow.h"

#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "format/arrow_plan.h"
#include "format/arrow_schema.h"

namespace stoker {
namespace {

constexpr std::string_view kArrowSchemaKey = "ARROW:schema";
constexpr size_t kHead = 8;  // 0xFFFFFFFF and the length of the message

/// Nothing where it is not base64.
std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<std::byte>(bits >> count & 0xFF));
  }
  return bytes;
}

}  // namespace

void add_arrow_shapes(const ParquetFile& file, std::span<const std::string_view> columns,
                      ColumnNames& names) {
  const auto message = from_base64(file.metadata_of(kArrowSchemaKey));
  if (!message || message->size() <= kHead) return;
  try {
    const FlatTable root = FlatTable::root(Bytes(*message).subspan(kHead));
    const ArrowSchema schema = parse_arrow_schema(root.table(2));
    for (size_t i = 0; i < std::min(columns.size(), schema.fields.size()); ++i) {
      const bool same = schema.fields[i].name == columns[i];
      if (same && names.shapes[i].empty()) names.shapes[i] = shape_by_type(schema.fields[i]);
    }
  } catch (const Error&) {
    return;  // it is said twice: the file's own schema is enough
  }
}

}  // namespace stoker
