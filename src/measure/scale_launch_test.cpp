// SPDX-License-Identifier: Apache-2.0
#include "measure/scale_launch.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/parallel.h"

namespace stoker {
namespace {

using enum ScaleAxis;
using Words = std::vector<std::string>;

/// A variable of the environment as it is to be, until the end of the test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    had_ = std::getenv(name) != nullptr;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  ~Variable() { had_ ? ::setenv(name_, before_.c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

TEST(CommandAt, ReplacesEveryHole) {
  EXPECT_EQ(command_at({"./a", "--n={n}", "{n}{n}", "n"}, threads, 16),
            (Words{"./a", "--n=16", "1616", "n"}));
  EXPECT_EQ(command_at({"./a"}, threads, 4), (Words{"./a"}));
  EXPECT_EQ(command_at({"mpirun", "-np", "{n}", "./a"}, procs, 4),
            (Words{"mpirun", "-np", "4", "./a"}));
}

TEST(CommandAt, TellsLaunchersHowMany) {
  EXPECT_EQ(command_at({"torchrun", "train.py", "-n", "7"}, procs, 2),
            (Words{"torchrun", "--nproc-per-node", "2", "train.py", "-n", "7"}));
  EXPECT_EQ(command_at({"/opt/bin/torchrun", "train.py"}, gpus, 2),
            (Words{"/opt/bin/torchrun", "--nproc-per-node", "2", "train.py"}));
  EXPECT_EQ(command_at({"python3", "-m", "torch.distributed.run", "train.py"}, procs, 2),
            (Words{"python3", "-m", "torch.distributed.run", "--nproc-per-node", "2", "train.py"}));
  EXPECT_EQ(command_at({"mpirun", "./a"}, procs, 8), (Words{"mpirun", "-n", "8", "./a"}));
  EXPECT_EQ(command_at({"torchrun", "train.py"}, threads, 2), (Words{"torchrun", "train.py"}));
  EXPECT_EQ(command_at({"./a"}, nodes, 3), (Words{"srun", "-N", "3", "./a"}));
  EXPECT_EQ(command_at({"srun", "-n", "9", "./a"}, nodes, 3),
            (Words{"srun", "-N", "3", "-n", "9", "./a"}));
}

TEST(CommandAt, RefusesANumberThatStaysTheSame) {
  EXPECT_THROW(command_at({"torchrun", "--nproc_per_node=4", "train.py"}, procs, 2), Error);
  EXPECT_THROW(command_at({"mpirun", "-np", "4", "./a"}, procs, 2), Error);
  EXPECT_THROW(command_at({"srun", "-N", "4", "./a"}, nodes, 2), Error);
}

TEST(EnvironmentAt, SetsThreads) {
  const auto set = environment_at({"./a"}, threads, 6, {});
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"}) {
    EXPECT_EQ(set.at(name), "6");
  }
  EXPECT_FALSE(set.contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_TRUE(environment_at({"./a"}, nodes, 6, {}).empty());
}

TEST(EnvironmentAt, GivesProcessesOneThreadUnlessTheUserSaysMore) {
  {
    const Variable none("OMP_NUM_THREADS", nullptr);
    EXPECT_EQ(environment_at({"./a"}, procs, 4, {}).at("OMP_NUM_THREADS"), "1");
    EXPECT_EQ(environment_at({"torchrun", "a.py"}, gpus, 1, {}).at("OMP_NUM_THREADS"), "1");
    EXPECT_FALSE(environment_at({"./a"}, gpus, 1, {}).contains("OMP_NUM_THREADS"));
  }
  const Variable two("OMP_NUM_THREADS", "2");
  EXPECT_TRUE(environment_at({"./a"}, procs, 4, {}).empty());
}

TEST(EnvironmentAt, NarrowsGpus) {
  EXPECT_EQ(environment_at({"./a"}, gpus, 2, {"3", "GPU-5", "7"}).at("CUDA_VISIBLE_DEVICES"),
            "3,GPU-5");
  EXPECT_EQ(environment_at({"./a"}, gpus, 3, {}).at("CUDA_VISIBLE_DEVICES"), "0,1,2");
}

TEST(UsableGpus, AreThoseThatAreVisible) {
  const Variable some("CUDA_VISIBLE_DEVICES", "3,GPU-5,-1,7");
  EXPECT_EQ(usable_gpus(), (Words{"3", "GPU-5"}));
  const Variable none("CUDA_VISIBLE_DEVICES", "");
  EXPECT_TRUE(usable_gpus().empty());
}

TEST(CoresAt, AreDifferentAndAllowed) {
  cpu_set_t allowed;
  ASSERT_EQ(::sched_getaffinity(0, sizeof allowed, &allowed), 0);
  const unsigned most = usable_cores();
  for (const unsigned n : {1U, most}) {
    const std::vector<int> cores = cores_at(threads, n);
    EXPECT_EQ(std::set<int>(cores.begin(), cores.end()).size(), n);
    for (const int core : cores) EXPECT_TRUE(CPU_ISSET(core, &allowed));
  }
  EXPECT_TRUE(cores_at(threads, most + 1).empty());
  EXPECT_TRUE(cores_at(gpus, 1).empty());
  const Variable two("OMP_NUM_THREADS", "2");
  EXPECT_EQ(cores_at(procs, 1).size(), most >= 2 ? 2 : 0);
  EXPECT_TRUE(cores_at(procs, most).empty());
}

}  // namespace
}  // namespace stoker
