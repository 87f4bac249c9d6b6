// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "os/command_output.h"
#include "probe/measurements.h"

namespace stoker {
namespace fs = std::filesystem;

namespace {

constexpr double kCommandSeconds = 3;

/// What statfs() calls a file system, from linux/magic.h and the file systems' own headers; for
/// where there is no /proc.
std::string type_by_number(const std::string& path) {
  constexpr std::array<std::pair<uint32_t, std::string_view>, 12> kTypes = {{
      {0xEF53, "ext4"},
      {0x01021994, "tmpfs"},
      {0x858458F6, "ramfs"},
      {0x58465342, "xfs"},
      {0x9123683E, "btrfs"},
      {0x2FC12FC1, "zfs"},
      {0x794C7630, "overlay"},
      {0x6969, "nfs"},
      {0x0BD00BD0, "lustre"},
      {0x47504653, "gpfs"},
      {0x19830326, "beegfs"},
      {0x00C36400, "ceph"},
  }};
  struct statfs facts {};
  if (::statfs(path.c_str(), &facts) != 0) return "unknown";
  for (const auto& [number, name] : kTypes) {
    if (static_cast<uint32_t>(facts.f_type) == number) return std::string(name);
  }
  return "unknown";
}

/// mountinfo writes blanks as \040, and so on.
std::string unescape_octal(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) { return text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool lies_in(const std::string& path, const std::string& mount) {
  if (mount == "/") return true;
  return path.starts_with(mount) && (path.size() == mount.size() || path[mount.size()] == '/');
}

std::optional<Quota> find_quota(const Place& place) {
  if (place.type == "lustre") {
    const auto text = command_output(
        {"lfs", "quota", "-q", "-u", std::to_string(::getuid()), place.path}, kCommandSeconds);
    return text ? parse_quota(*text) : std::nullopt;
  }
  dqblk facts{};
  if (!place.source.starts_with('/') ||
      ::quotactl(QCMD(Q_GETQUOTA, USRQUOTA), place.source.c_str(), static_cast<int>(::getuid()),
                 reinterpret_cast<caddr_t>(&facts)) != 0) {
    return std::nullopt;
  }
  constexpr uint64_t kQuotaBlock = 1024;
  const auto limit = [](uint64_t soft, uint64_t hard) { return hard != 0 ? hard : soft; };
  return Quota{facts.dqb_curspace, limit(facts.dqb_bsoftlimit, facts.dqb_bhardlimit) * kQuotaBlock,
               facts.dqb_curinodes, limit(facts.dqb_isoftlimit, facts.dqb_ihardlimit)};
}

}  // namespace

bool is_in_memory(std::string_view type) { return type == "tmpfs" || type == "ramfs"; }

std::optional<Mount> mount_of(const std::string& path, std::istream& lines) {
  std::optional<Mount> best;
  std::string line;
  while (std::getline(lines, line)) {
    // 36 35 98:0 /root /mount/point options [tags...] - type source superblock-options
    std::istringstream words(line);
    std::string word, point, type, source;
    for (int i = 0; i < 4; ++i) words >> word;
    words >> point;
    while (words >> word && word != "-") {
    }
    if (!(words >> type >> source)) continue;
    point = unescape_octal(point);
    // Later ones lie over earlier ones at the same point.
    if (lies_in(path, point) && (!best || point.size() >= best->point.size())) {
      best = Mount{point, type, unescape_octal(source)};
    }
  }
  return best;
}

std::optional<Stripe> parse_stripe(const std::string& text) {
  std::istringstream words(text);
  std::string word;
  std::optional<Stripe> best;
  int64_t count = 0;
  while (words >> word) {
    if (word.ends_with("stripe_count:")) words >> count;
    if (!word.ends_with("stripe_size:")) continue;
    uint64_t bytes = 0;
    if (!(words >> bytes)) break;
    // -1, all there are, is the widest.
    if (!best || static_cast<uint64_t>(count) > static_cast<uint64_t>(best->count)) {
      best = Stripe{count, bytes};
    }
  }
  return best;
}

std::optional<Quota> parse_quota(const std::string& text) {
  // path  kbytes quota limit grace  files quota limit grace; '*' behind what is exceeded.
  std::istringstream words(text);
  std::array<uint64_t, 8> numbers{};
  std::string word;
  words >> word;
  for (uint64_t& number : numbers) {
    if (!(words >> word)) return std::nullopt;
    const bool grace = &number == &numbers[3] || &number == &numbers[7];
    if (!grace && (word[0] < '0' || word[0] > '9')) return std::nullopt;
    number = std::strtoull(word.c_str(), nullptr, 10);
  }
  const auto limit = [](uint64_t soft, uint64_t hard) { return hard != 0 ? hard : soft; };
  return Quota{numbers[0] * 1024, limit(numbers[1], numbers[2]) * 1024, numbers[4],
               limit(numbers[5], numbers[6])};
}

void find_facts(Place& place) {
  std::error_code failed;
  const fs::path real = fs::canonical(place.path, failed);
  if (failed) throw system_error(place.path, "cannot open", failed.value());
  if (!fs::is_directory(real, failed)) {
    throw Error(ErrorKind::usage, printable(place.path) + ": should be a directory");
  }
  struct statvfs facts {};
  if (::statvfs(real.c_str(), &facts) != 0) throw system_error(place.path, "cannot stat", errno);
  place.total_bytes = uint64_t{facts.f_blocks} * facts.f_frsize;
  place.free_bytes = uint64_t{facts.f_bavail} * facts.f_frsize;
  if (facts.f_files > 0) {  // some file systems have no fixed number
    place.total_inodes = facts.f_files;
    place.free_inodes = facts.f_favail;
  }
  std::ifstream mounts("/proc/self/mountinfo");
  if (const auto mount = mount_of(real.string(), mounts)) {
    place.type = mount->type;
    place.mount = mount->point;
    place.source = mount->source;
  } else {
    place.type = type_by_number(real.string());
  }
  place.writable = (facts.f_flag & ST_RDONLY) == 0 && ::access(real.c_str(), W_OK | X_OK) == 0;
  place.quota = find_quota(place);
  if (place.type == "lustre") {
    if (const auto text = command_output({"lfs", "getstripe", "-d", place.path}, kCommandSeconds)) {
      place.stripe = parse_stripe(*text);
    }
  }
}

}  // namespace stoker
