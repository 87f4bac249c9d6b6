// SPDX-License-Identifier: Apache-2.0
#include "os/process_mark.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

namespace stoker {
namespace {

std::string with_part(std::string mark, int number, const std::string& text) {
  size_t begin = 0;
  for (int i = 0; i < number; ++i) begin = mark.find(',', begin) + 1;
  const size_t end = std::min(mark.find(',', begin), mark.size());
  return mark.replace(begin, end - begin, text);
}

TEST(ProcessMark, KnowsThisProcess) {
  const std::string mark = this_process_mark();
  EXPECT_EQ(process_lives(mark), Alive::yes);
  EXPECT_EQ(mark.find('/'), std::string::npos);
  EXPECT_EQ(mark, this_process_mark());
}

TEST(ProcessMark, OfAnotherHostBootContainerOrStart) {
  const std::string mark = this_process_mark();
  EXPECT_EQ(process_lives(with_part(mark, 0, "elsewhere")), Alive::unknown);
  EXPECT_EQ(process_lives(with_part(mark, 1, "00000000")), Alive::no);
  EXPECT_EQ(process_lives(with_part(mark, 2, "1")), Alive::unknown);
  EXPECT_EQ(process_lives(with_part(mark, 4, "1")), Alive::no);
}

TEST(ProcessMark, NoSuchName) {
  for (const char* text :
       {"", ",", "a,b,c,d,e", "a,b,c,-1,e", "a,b,c,0,e", "a,b,c,1", "a,b,c,1x,2"}) {
    EXPECT_EQ(process_lives(text), Alive::no) << text;
  }
}

TEST(ProcessMark, AProcessThatHasEnded) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string mark = this_process_mark();
    (void)!::write(ends[1], mark.data(), mark.size());
    ::_exit(0);
  }
  ::close(ends[1]);
  char text[256];
  const ssize_t length = ::read(ends[0], text, sizeof text);
  ::close(ends[0]);
  ASSERT_GT(length, 0);
  const std::string mark(text, static_cast<size_t>(length));
  EXPECT_NE(mark, this_process_mark());
  // Ended, but not waited for: the system still knows its number.
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(process_lives(mark), Alive::no);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(process_lives(mark), Alive::no);
}

TEST(ProcessMark, AProcessThatIsStopped) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string mark = this_process_mark();
    (void)!::write(ends[1], mark.data(), mark.size());
    ::pause();
    ::_exit(0);
  }
  char text[256];
  const ssize_t length = ::read(ends[0], text, sizeof text);
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_GT(length, 0);
  const std::string mark(text, static_cast<size_t>(length));
  EXPECT_FALSE(process_is_stopped(mark));
  EXPECT_NE(process_in_words(mark).find("process " + std::to_string(child) + " on "),
            std::string::npos);
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  ASSERT_EQ(::waitpid(child, nullptr, WUNTRACED), child);
  EXPECT_TRUE(process_is_stopped(mark));
  EXPECT_EQ(process_lives(mark), Alive::yes);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(process_is_stopped(mark));
}

}  // namespace
}  // namespace stoker
