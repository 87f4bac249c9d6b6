// SPDX-License-Identifier: Apache-2.0
#include "os/site.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "os/scratch_directory.h"

namespace stoker {
namespace {

class SiteTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("STOKER_SITE", (directory_.path() + "/wide.toml").c_str(), 1);
    ::setenv("XDG_CONFIG_HOME", directory_.path().c_str(), 1);
    std::filesystem::create_directories(directory_.path() + "/stoker");
    wide("");
  }
  void TearDown() override {
    for (const char* name : {"STOKER_SITE", "XDG_CONFIG_HOME", "STOKER_TEST_SCRATCH"}) {
      ::unsetenv(name);
    }
  }
  void wide(const std::string& text) { std::ofstream(directory_.path() + "/wide.toml") << text; }
  void own(const std::string& text) {
    std::ofstream(directory_.path() + "/stoker/site.toml") << text;
  }
  static std::string refusal() {
    try {
      read_site();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  ScratchDirectory directory_;
};

TEST_F(SiteTest, TheUsersOwnFileCountsBeforeTheSites) {
  wide(R"(
[slurm]
partition = "cpu"
account = "all"
sbatch = ["--qos=low"]
[transfer]
partition = "copy"
[price]
core_hour = 0.02
gpu_hour = 1
[[place]]
path = "/scratch"
purge_days = 30
)");
  own(R"(
[slurm]
account = "mine"
[price]
gpu_hour = 1.5
[[place]]
path = "/scratch/"
purge_days = 60.5
[[place]]
path = "/fast"
local = true
)");
  const Site site = read_site();
  EXPECT_EQ(site.slurm.partition, "cpu");
  EXPECT_EQ(site.slurm.account, "mine");
  EXPECT_EQ(site.slurm.sbatch, std::vector<std::string>{"--qos=low"});
  EXPECT_EQ(site.transfer.partition, "copy");
  EXPECT_EQ(site.core_hour, 0.02);
  EXPECT_EQ(site.gpu_hour, 1.5);
  ASSERT_EQ(site.places.size(), 2U);
  EXPECT_EQ(site.places[0].purge_days, 60.5);
  EXPECT_TRUE(site.places[1].local);
}

TEST_F(SiteTest, TheInnermostPlaceCounts) {
  ::setenv("STOKER_TEST_SCRATCH", "/big/me", 1);
  wide(R"(
place = [
  {path = "/big", purge_days = 90},
  {path = "$STOKER_TEST_SCRATCH/short", purge_days = 7},
  {path = "$STOKER_TEST_IS_NOT_SET", purge_days = 1},
]
)");
  const Site site = read_site();
  ASSERT_EQ(site.places.size(), 2U);
  EXPECT_EQ(place_of(site, "/big/me/short/data")->purge_days, 7);
  EXPECT_EQ(place_of(site, "/big/me/shorter")->purge_days, 90);
  EXPECT_EQ(place_of(site, "/bigger"), nullptr);
}

TEST_F(SiteTest, WhatIsWrongIsNamedWithItsLine) {
  const auto expect = [&](const std::string& text, const std::string& where,
                          const std::string& what) {
    wide(text);
    const std::string said = refusal();
    EXPECT_NE(said.find("wide.toml: line " + where), std::string::npos) << said;
    EXPECT_NE(said.find(what), std::string::npos) << said;
  };
  expect("[slurm]\npartitoin = 'x'\n", "2, column 1", "'partitoin' means nothing here");
  expect("[slurm]\npartition = 3\n", "2, column 13", "should be a text");
  expect("[price]\ngpu_hour = -1\n", "2", "greater than 0");
  expect("[price]\ngpu_hour = nan\n", "2", "greater than 0");
  expect("[[place]]\npurge_days = 3\n", "1", "the path is missing");
  expect("[[place]]\npath = 'scratch'\n", "2", "begin with a /");
  expect("[place]\npath = '/x'\n", "1", "[[place]]");
  expect("[slurm\n", "1", "");
  std::filesystem::remove(directory_.path() + "/wide.toml");
  EXPECT_NE(refusal().find("wide.toml"), std::string::npos);  // it was named, and is not there
}

}  // namespace
}  // namespace stoker
