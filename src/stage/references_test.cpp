// SPDX-License-Identifier: Apache-2.0
#include "stage/references.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "os/scratch_directory.h"

namespace stoker {
namespace {

class References : public testing::Test {
 protected:
  void SetUp() override { ::unsetenv("SLURM_JOB_ID"); }
  void TearDown() override { ::unsetenv("SLURM_JOB_ID"); }

  ScratchDirectory scratch_;
  SafeDirectory place_{scratch_.path()};
  SafeDirectory top_ = place_.make(directory_of_user(::geteuid()), 0700);
};

TEST_F(References, OtherHostsSeeThatAHolderLives) {
  const HeldReference held(top_, std::nullopt, ::geteuid(), "copy", work_mark(), {true, ""},
                           std::chrono::milliseconds(1));
  const std::optional<SafeDirectory> refs = top_.find("refs");
  ASSERT_TRUE(refs);
  const std::string path = refs->path() + "/" + refs->list().at(0).name;
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
  struct stat status {};
  for (int i = 0; i < 60'000 && status.st_mtime <= 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
  }
  EXPECT_GT(status.st_mtime, 1);
}

TEST_F(References, AJobsOwnIsThatOfWhoeverMadeIt) {
  ::setenv("SLURM_JOB_ID", "77", 1);
  const Reference of_job{::geteuid(), "copy", "job,77", ""};
  const HeldReference first(top_, std::nullopt, ::geteuid(), "copy", work_mark(), {true, ""});
  const HeldReference second(top_, std::nullopt, ::geteuid(), "copy", work_mark(), {true, ""});
  EXPECT_TRUE(first.made(of_job));
  EXPECT_FALSE(second.made(of_job));
  EXPECT_FALSE(first.made({::geteuid(), "other", "job,77", ""}));
}

TEST_F(References, ThreadedCleaningMeanwhileIsNoFailure) {
  std::atomic<bool> over{false};
  std::jthread cleaning([&] {
    while (!over) {
      const std::string user = place_.path() + "/" + directory_of_user(::geteuid());
      ::mkdir((user + "/refs").c_str(), 0700);
      ::rmdir((user + "/refs").c_str());
      ::rmdir(user.c_str());
      ::mkdir(user.c_str(), 0700);
    }
  });
  for (int i = 0; i < 3000; ++i) EXPECT_NO_THROW((void)live_references(place_, ::geteuid()));
  over = true;
}

TEST_F(References, ARunOfAJobEndsBeforeTheJob) {
  ::setenv("SLURM_JOB_ID", "77", 1);
  ::setenv("SLURM_CLUSTER_NAME", "main", 1);
  {
    const HeldReference whole(top_, std::nullopt, ::geteuid(), "copy", work_mark(), {true, ""});
    const HeldReference one(top_, std::nullopt, ::geteuid(), "copy", work_mark(), {true, "one"});
    const HeldReference two(top_, std::nullopt, ::geteuid(), "copy", work_mark(), {true, "two"});
  }
  ::unsetenv("SLURM_CLUSTER_NAME");
  const std::optional<SafeDirectory> refs = top_.find("refs");
  ASSERT_TRUE(refs);
  EXPECT_EQ(refs->list().size(), 3U);
  drop_references_of_job(top_, "77", "one", false);
  EXPECT_EQ(refs->list().size(), 2U);
  drop_references_of_job(top_, "77", "", false);
  ASSERT_EQ(refs->list().size(), 1U);
  EXPECT_TRUE(refs->list().front().name.ends_with("copy@job,77,run=two,cluster=main"));
  drop_references_of_job(top_, "77", "", true);
  EXPECT_TRUE(refs->list().empty());
}

}  // namespace
}  // namespace stoker
