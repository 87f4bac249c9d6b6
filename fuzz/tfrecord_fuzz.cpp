// SPDX-License-Identifier: Apache-2.0
// The first byte of an input says what the rest is:
//   'f'  a file as it lies on disk; checksums mostly stop it at once
//   'r'  records: each a length of two bytes, then the data; framed with right checksums here
//   'z'  a compressed file
//   'v'  the stored bytes of one field, behind a byte that says its type and encoding
// What comes out must lie within the file, decode or be refused, and survive being written.
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "dataset/inflating_file.h"
#include "dataset/value.h"
#include "format/collecting_sink.h"
#include "format/tfrecord.h"
#include "format/tfrecord_bytes.h"
#include "os/fake_file_system.h"

namespace stoker {
namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

Field field_of(const FoundField& found) {
  Field field;
  field.type = found.type;
  field.encoding = found.encoding;
  field.dtype = found.dtype;
  return field;
}

/// A value that can be written in the encoding it had is the same when it is read again.
void try_value(const Field& field, Bytes stored) {
  try {
    const Value value = decode_value(field, stored);
    require(equal_values(value, value));
    const std::string again = encode_value(value, field.encoding);
    require(equal_values(value, decode_value(field, as_bytes(again))));
  } catch (const Error& error) {
    require(error.kind() == ErrorKind::corrupt || error.kind() == ErrorKind::unsupported);
  }
}

void try_file(const std::string& contents, Compression compression) {
  FakeFileSystem files;
  files.add_file("/d/s", contents);
  const Source source{"/d", "s", "", &files};
  CollectingSink found;
  scan_tfrecord(source, {}, {"s", compression, 0, 0}, found);
  const bool compressed = compression != Compression::none;
  for (const auto& sample : found.samples) {
    for (const auto& [name, kept] : sample.fields) {
      const Extent& extent = kept.field.extent;
      if (compressed) continue;
      require(extent.offset <= contents.size());
      require(extent.length <= contents.size() - extent.offset);
      try_value(field_of(kept.field), as_bytes(contents).subspan(extent.offset, extent.length));
    }
  }
  for (const StatedChecksum& checksum : found.checksums) {
    require(compressed || checksum.length <= contents.size() - checksum.offset);
  }
  for (const Fault& fault : found.faults) require(!fault.message().empty());
}

/// Writes what was found in framed records, and finds it again.
void try_round_trip(const std::string& contents) {
  FakeFileSystem files;
  files.add_file("/d/s", contents);
  CollectingSink found;
  scan_tfrecord({"/d", "s", "", &files}, {}, {"s", Compression::none, 0, 0}, found);
  std::string out;
  size_t written = 0;
  for (const auto& sample : found.samples) {
    std::vector<OutField> fields;
    for (const auto& [name, kept] : sample.fields) {
      OutField field;
      field.name = name;
      field.encoding = kept.field.encoding;
      field.length = kept.field.extent.length;
      fields.push_back(field);
    }
    ShardOutput buffer(1);
    const auto writer = kTfrecordWrite.open({}, buffer);
    const OutSample one{sample.key, fields};
    try {
      writer->place({&one, 1}, buffer);
    } catch (const Error& error) {
      require(error.kind() == ErrorKind::unsupported);
      continue;
    }
    size_t i = 0;
    for (const auto& [name, kept] : sample.fields) {
      const Extent& extent = kept.field.extent;
      if (extent.length > 0) std::memcpy(fields[i].data, &contents[extent.offset], extent.length);
      ++i;
    }
    writer->seal(buffer);
    require(buffer.size(0) == kTfrecordWrite.size_of_sample(sample.key, fields));
    out += as_text(buffer.pending(0).front());
    ++written;
  }
  files.add_file("/d/t", out);
  CollectingSink again;
  scan_tfrecord({"/d", "t", "", &files}, {}, {"t", Compression::none, 0, 0}, again);
  require(again.samples.size() == written && again.faults.empty());
}

std::string frame(std::string_view rest) {
  std::string out;
  while (rest.size() >= 2) {
    const auto size = std::min<size_t>(load<uint16_t>(as_bytes(rest).data()), rest.size() - 2);
    out += record(std::string(rest.substr(2, size)));
    rest.remove_prefix(2 + size);
  }
  return out;
}

void try_input(std::string_view input) {
  if (input.size() < 2) return;
  const std::string_view rest = input.substr(1);
  switch (input[0]) {
    case 'f':
      return try_file(std::string(rest), Compression::none);
    case 'z':
      return try_file(std::string(rest), compression_of(as_bytes(rest)));
    case 'r': {
      const std::string contents = frame(rest);
      try_file(contents, Compression::none);
      return try_round_trip(contents);
    }
    case 'v': {
      Field field;
      field.encoding = static_cast<Encoding>((rest[0] & 0xFF) % 7);
      field.type = static_cast<FieldType>((rest[0] & 0xFF) / 7 % 5);
      // At an address that is aligned for every dtype.
      const std::string_view stored = rest.substr(1);
      std::vector<uint64_t> memory(stored.size() / 8 + 1);
      std::memcpy(memory.data(), stored.data(), stored.size());
      return try_value(field, std::as_bytes(std::span(memory)).first(stored.size()));
    }
    default:
      return;
  }
}

}  // namespace
}  // namespace stoker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::try_input({reinterpret_cast<const char*>(data), size});
  return 0;
}
