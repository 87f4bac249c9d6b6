// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <sstream>

#include "base/error.h"
#include "probe/measurements.h"

namespace stoker {
namespace {

// Lines as proc(5) describes them: optional fields before the dash, octal escapes, a mount over
// another.
constexpr const char* kMounts =
    "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "30 21 0:26 / /lustre rw - lustre mgs@tcp:/fs rw,flock\n"
    "31 21 0:27 / /lustre2 rw master:1 shared:4 - nfs4 server:/x rw\n"
    "32 21 0:28 / /with\\040blank rw - xfs /dev/sd\\040b rw\n"
    "33 21 0:29 / /data rw - ext4 /dev/old rw\n"
    "34 33 0:30 / /data rw - tmpfs tmpfs rw\n";

std::string type_at(const std::string& path) {
  std::istringstream lines(kMounts);
  const auto mount = mount_of(path, lines);
  return mount ? mount->type + " " + mount->point + " " + mount->source : "none";
}

TEST(PlaceFacts, Mounts) {
  EXPECT_EQ(type_at("/"), "ext4 / /dev/sda1");
  EXPECT_EQ(type_at("/home/me"), "ext4 / /dev/sda1");
  EXPECT_EQ(type_at("/lustre"), "lustre /lustre mgs@tcp:/fs");
  EXPECT_EQ(type_at("/lustre/a/b"), "lustre /lustre mgs@tcp:/fs");
  EXPECT_EQ(type_at("/lustre2/a"), "nfs4 /lustre2 server:/x");
  EXPECT_EQ(type_at("/lustre3"), "ext4 / /dev/sda1");
  EXPECT_EQ(type_at("/with blank/a"), "xfs /with blank /dev/sd b");
  EXPECT_EQ(type_at("/data/x"), "tmpfs /data tmpfs");
  std::istringstream nothing("");
  EXPECT_FALSE(mount_of("/", nothing));
}

TEST(PlaceFacts, StripesOfLustre) {
  const auto plain = parse_stripe(
      "stripe_count:  4 stripe_size:   1048576 pattern:       raid0 stripe_offset: -1\n");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->count, 4);
  EXPECT_EQ(plain->bytes, 1048576U);
  const auto all = parse_stripe("stripe_count:   -1 stripe_size:    4194304 stripe_offset:  -1\n");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->count, -1);
  const auto composite = parse_stripe(
      "  lcm_layout_gen:    0\n  lcme_extent.e_end:   4194304\n"
      "      stripe_count:  1       stripe_size:   1048576       pattern: raid0\n"
      "      stripe_count:  8       stripe_size:   2097152       pattern: raid0\n");
  ASSERT_TRUE(composite);
  EXPECT_EQ(composite->count, 8);
  EXPECT_EQ(composite->bytes, 2097152U);
  EXPECT_FALSE(parse_stripe("error: no stripe info\n"));
}

TEST(PlaceFacts, QuotaOfLustre) {
  const auto quota =
      parse_quota("     /lustre  1024*  2048  4096       -      17       0     100       -\n");
  ASSERT_TRUE(quota);
  EXPECT_EQ(quota->used_bytes, 1024U * 1024);
  EXPECT_EQ(quota->limit_bytes, 4096U * 1024);
  EXPECT_EQ(quota->used_files, 17U);
  EXPECT_EQ(quota->limit_files, 100U);
  EXPECT_FALSE(parse_quota(""));
  EXPECT_FALSE(parse_quota("Unexpected quotactl error: Operation not supported\n"));
}

TEST(PlaceFacts, OfARealPlace) {
  Place place;
  place.path = "/";
  find_facts(place);
  struct statvfs truth {};
  ASSERT_EQ(::statvfs("/", &truth), 0);
  EXPECT_EQ(place.total_bytes, uint64_t{truth.f_blocks} * truth.f_frsize);
  EXPECT_FALSE(place.type.empty());
  place.path = "/no/such/place";
  EXPECT_THROW(find_facts(place), Error);
  place.path = "/proc/self/status";
  EXPECT_THROW(find_facts(place), Error);
}

}  // namespace
}  // namespace stoker
