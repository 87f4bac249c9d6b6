// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stoker {

/// One option of a command: how it is parsed and what --help says about it.
struct Option {
  std::string_view name;   // "--shard-size"
  std::string_view value;  // what it takes, "SIZE"; empty for a flag
  std::string_view help;   // broken into lines where it has '\n'
  char letter = 0;         // 'j' where "-j 4" and "-j4" mean the same
};

/// What was typed after the name of a command. Every failure is an Error(usage) whose message
/// names the option.
class Arguments {
 public:
  /// `positionals` are the names of the arguments that are no options, all of them required. A last
  /// one that ends in "..." or "]" stands for any number; where that is kCommandWords,
  /// everything from its first word on belongs to it, options of another program included. Takes
  /// "--x value", "--x=value", "-j4"; "--" ends the options. "--help" or "-h" ends parsing:
  /// asks_help() is then true and nothing else is worth a look.
  Arguments(std::span<const std::string_view> positionals, std::span<const Option> options,
            std::span<const std::string> words);

  bool asks_help() const { return asks_help_; }
  const std::string& positional(size_t number) const { return positionals_.at(number); }
  /// Those that "..." stands for.
  const std::vector<std::string>& rest() const { return rest_; }
  /// How many of them come before "--"; all where there is none.
  size_t rest_before_dashes() const { return dashes_at_.value_or(rest_.size()); }
  bool flag(std::string_view name) const { return values_.contains(name); }
  /// Every one of an option that may be given more than once.
  std::vector<std::string> values(std::string_view name) const;
  /// The last one counts, so that a script's default can be overridden behind it.
  std::optional<std::string> value(std::string_view name) const;

  /// A whole number >= `least`.
  std::optional<uint64_t> number(std::string_view name, uint64_t least) const;
  /// "512M", "1.5GiB"; more than nothing.
  std::optional<uint64_t> size(std::string_view name) const;
  /// One of `choices`.
  std::optional<std::string> choice(std::string_view name,
                                    std::span<const std::string_view> choices) const;
  /// --jobs; 0 where it is not given: as many as there are cores.
  unsigned jobs() const;

 private:
  std::vector<std::string> positionals_, rest_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::optional<size_t> dashes_at_;
  bool asks_help_ = false;
};

/// ", did you mean 'pack'?" where one of `known` is close to `word`; otherwise nothing.
std::string suggestion(std::string_view word, std::span<const std::string_view> known);

/// The options as lines of a help page.
std::string describe_options(std::span<const Option> options);

/// A command line of its own, behind the options.
inline constexpr std::string_view kCommandWords = "COMMAND...";

/// What several commands have.
inline constexpr Option kJobsOption{"--jobs", "N", "threads to use (default: one per usable core)",
                                    'j'};
inline constexpr Option kListOption{"--list", "FILE",
                                    "for a folder: a CSV or JSON-lines file that names the\n"
                                    "files and gives further columns, such as a label"};
inline constexpr Option kRowIndexOption{
    "--row-index", "WHICH",
    "where the rows of JPEG photos begin, so that crops are decoded\n"
    "faster: rows (default), every N blocks of a row, or none"};
inline constexpr Option kJsonOption{"--json", "", "print one JSON document instead of text"};
inline constexpr Option kHelpOption{"--help", "", "show this page", 'h'};

}  // namespace stoker
