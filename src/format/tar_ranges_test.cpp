// SPDX-License-Identifier: Apache-2.0
#include "format/tar_ranges.h"

#include <gtest/gtest.h>

#include <random>

#include "format/tar_test_data.h"

namespace stoker::tar_test {
namespace {

// scan() of tar_test_data.h walks every archive of the other tests in ranges as well, and compares.

/// Members of every kind, an archive within a member among them, and sometimes damage.
std::string random_archive(std::mt19937& random) {
  const auto below = [&](unsigned limit) { return random() % limit; };
  std::string archive;
  for (unsigned i = 0, count = 5 + below(30); i < count; ++i) {
    const std::string key = fmt::format("d{}/{}", below(2), i / 2);
    const std::string contents(below(3000), static_cast<char>('a' + i % 26));
    switch (below(12)) {
      case 0:
        archive += pax(record("path", key + ".txt") + record("comment", contents)) +
                   member("short.txt", contents);
        break;
      case 1:
        archive += member("././@LongLink", key + std::string(150, 'x') + ".txt", 'L') +
                   member("short", contents);
        break;
      case 2:
        archive += member("d/", "", '5');
        break;
      case 3:
        archive += member("d/.hidden", contents);
        break;
      case 4:
        archive += member("d/link.jpg", "", '2');
        break;
      case 5:
        archive += member(key + ".tar", member("inner/a.jpg", "1") + member("inner/b.jpg", "2") +
                                            (below(2) == 0 ? kEnd : std::string()));
        break;
      case 6:
        archive += pax(record("mtime", "1.5"), 'g');
        break;
      default:
        archive += member(key + (below(2) == 0 ? ".jpg" : ".cls"), contents);
    }
  }
  archive += kEnd;
  if (below(3) == 0) archive[below(archive.size())] ^= 0x20;
  if (below(4) == 0) archive.resize(below(archive.size()));
  return archive;
}

TEST(TarRanges, FindWhatOneWalkFinds) {
  std::mt19937 random(1);
  size_t samples = 0;
  for (int i = 0; i < 300; ++i) samples += scan(random_archive(random)).samples.size();
  EXPECT_GT(samples, 1000U);
}

TEST(TarRanges, AreNotLookedForAmongLargeMembers) {
  const std::string contents(1'000'000, 'x');
  std::string archive;
  for (int i = 0; i < 40; ++i) archive += member(fmt::format("{}.mp4", i), contents);
  archive += kEnd;
  FakeFileSystem files;
  files.add_file("/d/x.tar", archive);
  Recorder recorder;
  scan_tar_in_ranges({"/d", "x.tar", "", &files}, {"x.tar", Compression::none, 0, 0},
                     {2, 2'000'000}, recorder);
  EXPECT_EQ(recorder.samples.size(), 40U);
  EXPECT_LT(files.bytes_read(), 3'000'000U);
}

}  // namespace
}  // namespace stoker::tar_test
