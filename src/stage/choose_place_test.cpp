// SPDX-License-Identifier: Apache-2.0
#include "stage/choose_place.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stoker {
namespace {

StagePlace with_room(const std::string& path, uint64_t room, const std::string& problem = "") {
  StagePlace place;
  place.path = path;
  place.room = room;
  place.problem = problem;
  return place;
}

TEST(ChoosePlace, TakesTheLargestThatCanBeUsed) {
  const std::vector<StagePlace> places = {with_room("/a", 10), with_room("/b", 30),
                                          with_room("/c", 90, "cannot be written")};
  const ChosenPlace chosen = choose_place(places, 20, 0xFFFF, false);
  EXPECT_EQ(chosen.path, "/b");
  EXPECT_NE(chosen.why.find("/a: 10 B free"), std::string::npos);
  EXPECT_NE(chosen.why.find("/c: cannot be written"), std::string::npos);
}

TEST(ChoosePlace, SaysWhatIsWrongWhereNoneHasRoom) {
  const std::vector<StagePlace> places = {with_room("/a", 10), with_room("/b", 30)};
  EXPECT_THROW(choose_place(places, 31, 0xFFFF, false), Error);
  EXPECT_EQ(choose_place(places, 31, 0xFFFF, true).path, "/b");
  EXPECT_THROW(choose_place({}, 1, 0xFFFF, true), Error);
  EXPECT_THROW(choose_place({with_room("/a", 10, "x")}, 1, 0xFFFF, true), Error);
}

}  // namespace
}  // namespace stoker
