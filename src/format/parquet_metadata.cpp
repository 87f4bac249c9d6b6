// SPDX-License-Identifier: Apache-2.0
#include "format/parquet_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/text.h"
#include "format/columnar.h"
#include "format/thrift.h"

namespace stoker {
namespace {

constexpr unsigned kMaxDepth = 32;
constexpr size_t kEnd = 8;  // length of the footer, and the magic

uint64_t count_of(int64_t value, const char* what) {
  if (value < 0) corrupt(fmt::format("{} {}", value, what));
  return static_cast<uint64_t>(value);
}

/// One SchemaElement, before it is put into the tree.
struct Element {
  ParquetNode node;
  uint64_t children = 0;
  int32_t converted = -1;
  int logical = 0;
  uint32_t bits = 0;
  bool is_signed = true;
};

// ConvertedType
constexpr int32_t kUtf8 = 0, kMap = 1, kMapKeyValue = 2, kList = 3, kEnum = 4, kDecimal = 5;
constexpr int32_t kUint8 = 11, kInt8 = 15, kJson = 19, kInterval = 21;
// LogicalType
constexpr int kLogicalString = 1, kLogicalMap = 2, kLogicalList = 3, kLogicalEnum = 4;
constexpr int kLogicalDecimal = 5, kLogicalInteger = 10, kLogicalJson = 12, kLogicalFloat16 = 15;

void parse_logical(ThriftStruct logical, Element& element) {
  while (logical.next()) {
    element.logical = logical.id();
    if (logical.id() != kLogicalInteger) continue;
    ThriftStruct integer = logical.structure();
    while (integer.next()) {
      if (integer.id() == 1) element.bits = static_cast<uint32_t>(integer.integer());
      if (integer.id() == 2) element.is_signed = integer.boolean();
    }
  }
}

Element parse_element(ThriftStruct fields) {
  Element element;
  while (fields.next()) {
    switch (fields.id()) {
      case 1: {
        const int32_t type = fields.int32();
        if (type < 0 || type > 7) corrupt(fmt::format("a column of the unknown type {}", type));
        element.node.type = static_cast<ParquetType>(type);
        break;
      }
      case 2:
        element.node.width = static_cast<uint32_t>(count_of(fields.int32(), "bytes per value"));
        break;
      case 3: {
        const int32_t repetition = fields.int32();
        if (repetition < 0 || repetition > 2) corrupt("a column of unknown repetition");
        element.node.repetition = static_cast<ParquetNode::Repetition>(repetition);
        break;
      }
      case 4:
        element.node.name = fields.text();
        break;
      case 5:
        element.children = count_of(fields.int32(), "children of a column");
        break;
      case 6:
        element.converted = fields.int32();
        break;
      case 10:
        parse_logical(fields.structure(), element);
        break;
      default:
        break;
    }
  }
  return element;
}

DType integer_dtype(const Element& element, bool wide) {
  constexpr std::array kUnsigned = {DType::uint8, DType::uint16, DType::uint32, DType::uint64};
  constexpr std::array kSigned = {DType::int8, DType::int16, DType::int32, DType::int64};
  const int32_t converted = element.converted;
  if (element.logical == kLogicalInteger) {
    const auto& all = element.is_signed ? kSigned : kUnsigned;
    if (element.bits == 8) return all[0];
    if (element.bits == 16) return all[1];
    return all[wide ? 3 : 2];
  }
  if (converted >= kUint8 && converted < kUint8 + 4) return kUnsigned[size_t(converted - kUint8)];
  if (converted >= kInt8 && converted < kInt8 + 4) return kSigned[size_t(converted - kInt8)];
  return wide ? DType::int64 : DType::int32;
}

/// Says what the annotations mean for the type.
void interpret(Element& element) {
  ParquetNode& node = element.node;
  const int32_t converted = element.converted;
  const int logical = element.logical;
  node.list = converted == kList || logical == kLogicalList;
  node.map = converted == kMap || converted == kMapKeyValue || logical == kLogicalMap;
  node.text = converted == kUtf8 || converted == kEnum || converted == kJson ||
              logical == kLogicalString || logical == kLogicalEnum || logical == kLogicalJson;
  node.unreadable = converted == kDecimal || converted == kInterval || logical == kLogicalDecimal;
  if (!node.type) return;
  switch (*node.type) {
    case ParquetType::boolean:
      node.dtype = DType::bool8;
      break;
    case ParquetType::int32:
    case ParquetType::int64:
      node.dtype = integer_dtype(element, *node.type == ParquetType::int64);
      // An annotation for the other width says nothing.
      if (*node.type == ParquetType::int32 && size_of(node.dtype) == 8) node.dtype = DType::int32;
      if (*node.type == ParquetType::int64 && size_of(node.dtype) != 8) node.dtype = DType::int64;
      break;
    case ParquetType::int96:
      node.dtype = DType::int64;  // nanoseconds since 1970
      break;
    case ParquetType::real32:
      node.dtype = DType::float32;
      break;
    case ParquetType::real64:
      node.dtype = DType::float64;
      break;
    case ParquetType::fixed_byte_array:
      if (logical == kLogicalFloat16 && node.width == 2) node.dtype = DType::float16;
      break;
    default:
      break;
  }
}

/// Puts the elements, which lie in the order of a walk through the tree, together.
ParquetNode build_tree(std::vector<Element>& elements, size_t& next, uint32_t& leaves,
                       unsigned depth) {
  if (depth > kMaxDepth) corrupt("columns are nested too deep");
  if (next >= elements.size()) corrupt("the schema is incomplete");
  Element& element = elements[next++];
  ParquetNode node = std::move(element.node);
  if (node.type) {
    if (element.children > 0) corrupt("a column that holds values and columns");
    node.leaf = leaves++;
    return node;
  }
  if (element.children > elements.size() - next) corrupt("the schema is incomplete");
  for (uint64_t i = 0; i < element.children; ++i) {
    node.children.push_back(build_tree(elements, next, leaves, depth + 1));
  }
  return node;
}

void parse_column_metadata(ThriftStruct fields, uint64_t file_end, ParquetChunk& chunk) {
  uint64_t data = 0;
  uint64_t dictionary = 0;
  uint64_t size = 0;
  while (fields.next()) {
    switch (fields.id()) {
      case 1:
        chunk.type = static_cast<ParquetType>(fields.int32());
        break;
      case 4: {
        const int32_t codec = fields.int32();
        if (codec < 0 || codec > 7) corrupt(fmt::format("the unknown codec {}", codec));
        chunk.codec = static_cast<ParquetCodec>(codec);
        break;
      }
      case 5:
        chunk.values = count_of(fields.integer(), "values");
        break;
      case 7:
        size = count_of(fields.integer(), "bytes of a column");
        break;
      case 9:
        data = count_of(fields.integer(), "as the place of a page");
        break;
      case 11:
        dictionary = count_of(fields.integer(), "as the place of a dictionary");
        break;
      default:
        break;
    }
  }
  chunk.begin = dictionary != 0 ? std::min(data, dictionary) : data;
  if (chunk.begin > file_end || size > file_end - chunk.begin) {
    corrupt(fmt::format("a column of {} bytes at {}, beyond the end of the data at {}", size,
                        chunk.begin, file_end));
  }
  chunk.end = chunk.begin + size;
}

ParquetChunk parse_chunk(ThriftStruct fields, uint64_t file_end) {
  ParquetChunk chunk;
  bool described = false;
  while (fields.next()) {
    if (fields.id() == 1) {
      if (!fields.text().empty()) chunk.refusal = "its values lie in another file";
    } else if (fields.id() == 3) {
      parse_column_metadata(fields.structure(), file_end, chunk);
      described = true;
    } else if (fields.id() == 8) {
      chunk.refusal = "it is encrypted";
    }
  }
  if (!described && chunk.refusal.empty()) chunk.refusal = "it is not described";
  return chunk;
}

ParquetRowGroup parse_row_group(ThriftStruct fields, uint64_t file_end) {
  ParquetRowGroup group;
  while (fields.next()) {
    if (fields.id() == 1) {
      for (uint64_t i = fields.structures(); i > 0; --i) {
        group.chunks.push_back(parse_chunk(fields.element(), file_end));
        group.bytes += group.chunks.back().end - group.chunks.back().begin;
        if (group.bytes > file_end) corrupt("the columns have more bytes than the file");
      }
    } else if (fields.id() == 3) {
      group.rows = count_of(fields.integer(), "rows");
    }
  }
  return group;
}

void parse_schema(ThriftStruct& fields, ParquetFile& file) {
  std::vector<Element> elements;
  for (uint64_t i = fields.structures(); i > 0; --i) {
    elements.push_back(parse_element(fields.element()));
    interpret(elements.back());
  }
  size_t next = 0;
  file.root = build_tree(elements, next, file.leaves, 0);
  if (next != elements.size()) corrupt("the schema has columns that belong nowhere");
}

void parse_key_values(ThriftStruct& fields, ParquetFile& file) {
  for (uint64_t i = fields.structures(); i > 0; --i) {
    ThriftStruct pair = fields.element();
    std::string_view key, value;
    while (pair.next()) {
      if (pair.id() == 1) key = pair.text();
      if (pair.id() == 2) value = pair.text();
    }
    file.metadata.emplace_back(key, value);
  }
}

/// Versions of Arrow that wrote the wrong flag into compressed pages of version 2.
bool is_old_arrow(std::string_view created_by) {
  constexpr std::array<std::string_view, 4> kOld = {
      "parquet-cpp version ", "parquet-cpp-arrow version 0.", "parquet-cpp-arrow version 1.",
      "parquet-cpp-arrow version 2."};
  return std::any_of(kOld.begin(), kOld.end(),
                     [&](std::string_view begin) { return created_by.starts_with(begin); });
}

void parse_footer(uint64_t file_end, ParquetFile& file) {
  ThriftBytes bytes(file.footer);
  ThriftStruct fields(bytes);
  std::string_view created_by;
  while (fields.next()) {
    if (fields.id() == 2) parse_schema(fields, file);
    if (fields.id() == 3) file.rows = count_of(fields.integer(), "rows");
    if (fields.id() == 4) {
      for (uint64_t i = fields.structures(); i > 0; --i) {
        file.groups.push_back(parse_row_group(fields.element(), file_end));
      }
    }
    if (fields.id() == 5) parse_key_values(fields, file);
    if (fields.id() == 6) created_by = fields.text();
  }
  if (!is_old_arrow(created_by)) return;
  for (ParquetRowGroup& group : file.groups) {
    for (ParquetChunk& chunk : group.chunks) chunk.flags_lie = true;
  }
}

/// What lists the same bytes many times would make much of little.
void require_room(const ParquetFile& file, uint64_t file_end) {
  uint64_t bytes = 0;
  for (const ParquetRowGroup& group : file.groups) {
    bytes += group.bytes;
    if (bytes > file_end) corrupt("the columns have more bytes than the file");
    if (group.chunks.size() != file.leaves) {
      corrupt(fmt::format("a row group of {} columns where the schema has {}", group.chunks.size(),
                          file.leaves));
    }
  }
}

}  // namespace

std::string_view ParquetFile::metadata_of(std::string_view key) const {
  const auto found = std::find_if(metadata.begin(), metadata.end(),
                                  [&](const auto& pair) { return pair.first == key; });
  return found == metadata.end() ? std::string_view() : found->second;
}

ParquetFile read_parquet_footer(ReadableFile& file) {
  const uint64_t size = file.info().size;
  std::array<std::byte, kEnd> end{};
  if (size < kParquetMagic.size() + kEnd || file.read_at(size - kEnd, end) != kEnd) {
    corrupt("truncated: too short for a Parquet file");
  }
  const std::string_view magic = as_text(end).substr(sizeof(uint32_t));
  if (magic == "PARE") throw Error(ErrorKind::unsupported, "its footer is encrypted");
  if (magic != kParquetMagic) {
    corrupt("truncated: the footer is missing, and without it nothing says where columns lie");
  }
  const uint64_t length = load<uint32_t>(end.data());
  if (length > size - kEnd - kParquetMagic.size()) {
    corrupt(fmt::format("a footer of {} bytes in a file of {}", length, size));
  }
  ParquetFile parsed;
  parsed.footer.resize(length);
  const uint64_t begin = size - kEnd - length;
  read_exactly(file, "footer", begin, parsed.footer);
  parse_footer(begin, parsed);
  require_room(parsed, begin);
  return parsed;
}

}  // namespace stoker
