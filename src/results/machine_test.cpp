// SPDX-License-Identifier: Apache-2.0
#include "results/machine.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"

namespace stoker {
namespace {

Rate rate(const char* what, double per_s, bool cold, unsigned threads = 1, uint64_t block = 0) {
  Rate rate;
  rate.what = what;
  rate.unit = "bytes";
  rate.per_s = per_s;
  rate.cold = cold;
  rate.threads = threads;
  rate.block_bytes = block;
  return rate;
}

TEST(Machine, BestRateIsACold) {
  Place place;
  place.rates = {rate("read", 9, false), rate("read", 2, true), rate("read", 3, true, 4),
                 rate("write", 5, true)};
  ASSERT_NE(place.best("read"), nullptr);
  EXPECT_EQ(place.best("read")->per_s, 3);
  EXPECT_EQ(place.best("open"), nullptr);
}

TEST(Machine, BestRateOfMemoryIsWarm) {
  Place place;
  place.rates = {rate("read", 9, false), rate("read", 7, false)};
  EXPECT_EQ(place.best("read")->per_s, 9);
}

TEST(Machine, BestRateOfABlockSize) {
  Place place;
  place.rates = {rate("random_read", 100, true, 1, 4096),
                 rate("random_read", 900, true, 1, 131072)};
  EXPECT_EQ(place.best("random_read", 4096)->per_s, 100);
}

TEST(Machine, DecodeRateOfOneCore) {
  Machine machine;
  EXPECT_EQ(machine.decode_per_core(), std::nullopt);
  machine.decode = {rate("decode", 1000, false, 2), rate("decode", 600, false, 1)};
  EXPECT_EQ(machine.decode_per_core(), 600);
}

Machine example() {
  Machine machine;
  machine.host = "node1";
  machine.kernel = "6.1";
  machine.measured_at = "2026-01-31T12:00:00Z";
  machine.cores = 3;
  machine.machine_cores = 8;
  machine.affinity_cores = 4;
  machine.cgroup_cores = 2.5;
  machine.memory_bytes = 1ULL << 40;
  machine.memory_limit_bytes = 7;
  machine.numa = {{1, "0-3", 99}};
  machine.memory = {rate("copy", 1e10, false, 2)};
  machine.decode = {rate("decode", 500, false)};
  machine.photos = "generated";
  machine.gpus = {{"GPU", 80, {rate("pinned", 5e10, false)}}};
  Place place;
  place.path = "/scratch";
  place.known_as = "$SCRATCH";
  place.type = "lustre";
  place.free_bytes = 12;
  place.quota = Quota{1, 2, 3, 4};
  place.stripe = Stripe{-1, 1 << 20};
  place.problem = "read-only";
  place.rates = {rate("read", 1e9, true)};
  machine.places = {place};
  machine.copies = {{"/a", "/b", rate("copy", 3, true)}};
  machine.notes = {"no /sys"};
  machine.written_bytes = 77;
  machine.seconds = 1.5;
  return machine;
}

TEST(Machine, ThereAndBack) {
  const Json json = to_json(example());
  EXPECT_EQ(to_json(machine_from_json(json)), json);
  const Machine back = machine_from_json(parse_json(json.dump()));
  EXPECT_EQ(back.places.at(0).stripe->count, -1);
  EXPECT_EQ(back.places.at(0).quota->limit_files, 4U);
  EXPECT_EQ(back.places.at(0).total_bytes, std::nullopt);
  EXPECT_EQ(back.cgroup_cores, 2.5);
  EXPECT_EQ(back.slurm_cores, 0U);
}

TEST(Machine, MembersThatOthersRead) {
  const Json json = to_json(example());
  EXPECT_EQ(json.at("cores"), 3);
  EXPECT_EQ(json.at("decode_per_core_per_s"), 500);
  EXPECT_EQ(json.at("places").at(0).at("read_bytes_per_s"), 1e9);
  EXPECT_TRUE(json.at("places").at(0).at("write_bytes_per_s").is_null());
}

TEST(Machine, AnythingElseIsRefused) {
  for (const Json& json : {Json::object(), Json::array(), Json{{"host", 1}}, Json(nullptr)}) {
    EXPECT_THROW(machine_from_json(json), Error);
  }
  Json newer = to_json(example());
  newer["later"] = 1;
  EXPECT_EQ(machine_from_json(newer).host, "node1");
}

}  // namespace
}  // namespace stoker
