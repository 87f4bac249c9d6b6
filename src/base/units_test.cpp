// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace stoker {
namespace {

TEST(Units, Bytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(9'994), "9.99 kB");
  EXPECT_EQ(format_bytes(9'996), "10.0 kB");
  EXPECT_EQ(format_bytes(99'960), "100 kB");
  EXPECT_EQ(format_bytes(999'499), "999 kB");
  EXPECT_EQ(format_bytes(999'500), "1.00 MB");
  EXPECT_EQ(format_bytes(1'281'167'000), "1.28 GB");
  EXPECT_EQ(format_bytes(146'000'000'000), "146 GB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "18.4 EB");
}

TEST(Units, Rate) {
  EXPECT_EQ(format_rate(0), "0 B/s");
  EXPECT_EQ(format_rate(0.4), "0 B/s");
  EXPECT_EQ(format_rate(1.5e9), "1.50 GB/s");
  EXPECT_EQ(format_rate(-1), "n/a");
  EXPECT_EQ(format_rate(std::nan("")), "n/a");
  EXPECT_EQ(format_rate(std::numeric_limits<double>::infinity()), "n/a");
}

TEST(Units, Count) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1'281'167), "1,281,167");
  EXPECT_EQ(format_count(123'456), "123,456");
  EXPECT_EQ(format_count(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(Units, Duration) {
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_duration(1.5e-9), "1.5 ns");
  EXPECT_EQ(format_duration(850e-9), "850 ns");
  EXPECT_EQ(format_duration(2.5e-6), "2.5 µs");
  EXPECT_EQ(format_duration(0.012), "12 ms");
  EXPECT_EQ(format_duration(0.9994), "999 ms");
  EXPECT_EQ(format_duration(0.9996), "1.0 s");
  EXPECT_EQ(format_duration(3.2), "3.2 s");
  EXPECT_EQ(format_duration(9.96), "10 s");
  EXPECT_EQ(format_duration(59.4), "59 s");
  EXPECT_EQ(format_duration(59.6), "1 min 00 s");
  EXPECT_EQ(format_duration(245), "4 min 05 s");
  EXPECT_EQ(format_duration(3599.4), "59 min 59 s");
  EXPECT_EQ(format_duration(3599.6), "1 h 00 min");
  EXPECT_EQ(format_duration(7380), "2 h 03 min");
  EXPECT_EQ(format_duration(86'399), "1 d 00 h");
  EXPECT_EQ(format_duration(3 * 86'400 + 4 * 3600), "3 d 04 h");
  EXPECT_EQ(format_duration(-1), "n/a");
  EXPECT_EQ(format_duration(std::nan("")), "n/a");
}

TEST(Units, ParsesSizes) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("4096B"), 4096u);
  EXPECT_EQ(parse_size("1k"), 1000u);
  EXPECT_EQ(parse_size("1K"), 1000u);
  EXPECT_EQ(parse_size("1G"), 1'000'000'000u);
  EXPECT_EQ(parse_size("1g"), 1'000'000'000u);
  EXPECT_EQ(parse_size("512M"), 512'000'000u);
  EXPECT_EQ(parse_size("1.5T"), 1'500'000'000'000u);
  EXPECT_EQ(parse_size("1.28 GB"), 1'280'000'000u);
  EXPECT_EQ(parse_size("64Ki"), 65'536u);
  EXPECT_EQ(parse_size("1GiB"), 1'073'741'824u);
  EXPECT_EQ(parse_size("0.5MiB"), 524'288u);
  EXPECT_EQ(parse_size("0.3Ki"), 307u);
  EXPECT_EQ(parse_size("1.0"), 1u);
  EXPECT_EQ(parse_size("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_size("15.999Ei").has_value(), true);
}

TEST(Units, RefusesWhatIsNoSize) {
  for (const char* text : {"",
                           " ",
                           "B",
                           "G",
                           "-1",
                           "+1",
                           "1.5",
                           "1.5B",
                           ".5G",
                           "5.G",
                           "1..5G",
                           "1,5G",
                           "1e9",
                           "0x10",
                           " 1",
                           "1 ",
                           "1G ",
                           "1  G",
                           "1GG",
                           "1Gb",
                           "1Bi",
                           "1iB",
                           "1GiBB",
                           "1Z",
                           "one",
                           "1.G",
                           "inf",
                           "nan",
                           "18446744073709551616",
                           "19E",
                           "16Ei",
                           "99999999999999999999G",
                           "1.0000000000000000000G"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << '"' << text << '"';
  }
}

}  // namespace
}  // namespace stoker
