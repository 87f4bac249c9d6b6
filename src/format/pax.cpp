// SPDX-License-Identifier: Apache-2.0
#include "format/pax.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/text.h"

namespace stoker {
namespace {

size_t digits_of(size_t value) {
  size_t digits = 1;
  while (value >= 10) {
    value /= 10;
    ++digits;
  }
  return digits;
}

void take_record(PaxRecords& records, std::string_view key, std::string_view value) {
  if (key == "path") {
    // An empty value takes back what was said before.
    records.path = value.empty() ? std::nullopt : std::optional(value);
  } else if (key == "size") {
    uint64_t size = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (error == std::errc::result_out_of_range) size = std::numeric_limits<uint64_t>::max();
    if (error == std::errc::invalid_argument || end != value.data() + value.size()) {
      records.damage = fmt::format("size in pax header is no number: '{}'", printable(value));
    }
    records.size = size;
  } else if (key.starts_with("GNU.sparse.")) {
    records.sparse = true;
    if (key == "GNU.sparse.name") records.path = value;
  }
}

}  // namespace

PaxRecords parse_pax(std::string_view body) {
  PaxRecords records;
  const char* const begin = body.data();
  while (!body.empty() && records.damage.empty()) {
    // Some writers count the padding of the last block.
    if (body.front() == '\0' && body.find_first_not_of('\0') == std::string_view::npos) break;
    size_t length = 0;
    const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), length);
    const size_t digits = static_cast<size_t>(end - body.data());
    if (error != std::errc() || digits + 1 >= body.size() || *end != ' ' || length > body.size() ||
        length < digits + 3 || body[length - 1] != '\n') {
      records.damage = fmt::format("pax header is damaged at its byte {}: no record is as long",
                                   body.data() - begin);
      break;
    }
    const std::string_view record = body.substr(digits + 1, length - digits - 2);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      records.damage =
          fmt::format("pax header is damaged at its byte {}: no key", body.data() - begin);
      break;
    }
    take_record(records, record.substr(0, equals), record.substr(equals + 1));
    body.remove_prefix(length);
  }
  return records;
}

size_t size_of_pax(size_t key, size_t value) {
  const size_t rest = key + value + 3;  // a space, '=' and the line feed
  // The length counts its own digits.
  size_t length = rest + digits_of(rest);
  if (digits_of(length) != digits_of(rest)) length = rest + digits_of(length);
  return length;
}

void append_pax(std::string& body, std::string_view key, std::string_view value) {
  fmt::format_to(std::back_inserter(body), "{} {}={}\n", size_of_pax(key.size(), value.size()), key,
                 value);
}

}  // namespace stoker
