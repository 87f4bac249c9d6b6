// SPDX-License-Identifier: Apache-2.0
#include "slurm/batch_script.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "os/command_output.h"

namespace stoker {
namespace {

const std::vector<std::string> kHostile = {
    "plain", "",   "it's",   "$(touch x)",       "`id`",     "a;b", "a\nb", "a b", "\"x\" $HOME",
    "*",     "\\", "--help", "#SBATCH --time=1", "!history", "~",
};

TEST(ShellQuoted, ShellReadsBackWhatWasQuoted) {
  std::vector<std::string> words = {"printf", "%s\\0"};
  words.insert(words.end(), kHostile.begin(), kHostile.end());
  std::string expected;
  for (const std::string& word : kHostile) expected += word + '\0';
  EXPECT_EQ(command_output({"bash", "-c", shell_quoted(words)}, 10), expected);
}

TEST(BatchScript, LogMayLieAnywhere) {
  BatchScript script;
  script.name = "stoker-pack";
  script.log = "/tmp/it's $(touch x);\n/log-%j";
  script.body = "echo done\n";
  script.request.partition = "gpu";
  script.request.cpus = 4;
  script.array = "1-4";
  EXPECT_EQ(text_of(script),
            "#!/bin/bash\n#SBATCH --job-name=stoker-pack\n#SBATCH --partition=gpu\n"
            "#SBATCH --cpus-per-task=4\n#SBATCH --array=1-4\n#SBATCH --output=/dev/null\n"
            "set -euo pipefail\nexec >>'/tmp/it'\\''s $(touch x);\n/log-'\"$SLURM_JOB_ID\"'' 2>&1\n"
            "echo done\n");
}

TEST(BatchScript, LogInADirectoryThatLooksLikeANumberOfAJob) {
  BatchScript script;
  script.name = "stoker-pack";
  script.log = "/100%job/log-%j";
  EXPECT_NE(text_of(script).find("exec >>'/100%job/log-'\"$SLURM_JOB_ID\"'' 2>&1"),
            std::string::npos);
}

TEST(BatchScript, ValuesThatWouldBeMoreThanAValueAreRefused) {
  for (const char* const value : {"a b", "a\n#SBATCH --uid=0", "$(id)", "a;b", "'x'", "\"x\""}) {
    BatchScript script;
    script.request.partition = value;
    EXPECT_THROW(text_of(script), Error) << value;
    script.request.partition.clear();
    script.more = {std::string("--comment=") + value};
    EXPECT_THROW(text_of(script), Error) << value;
  }
  BatchScript script;
  script.more = {"rm"};
  EXPECT_THROW(text_of(script), Error);
}

}  // namespace
}  // namespace stoker
