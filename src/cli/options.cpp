// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"

namespace stoker {
namespace {

[[noreturn]] void wrong(const std::string& message) { throw Error(ErrorKind::usage, message); }

const Option* find_option(std::span<const Option> options, std::string_view word) {
  for (const Option& option : options) {
    if (option.name == word) return &option;
    if (option.letter != 0 && word.size() >= 2 && word[0] == '-' && word[1] == option.letter) {
      return &option;
    }
  }
  return nullptr;
}

[[noreturn]] void unknown_option(std::span<const Option> options, std::string_view word) {
  std::vector<std::string_view> names;
  for (const Option& option : options) names.push_back(option.name);
  wrong(fmt::format("unknown option '{}'{}", printable(word), suggestion(word, names)));
}

// A word split where its value begins: "--x=1" and "-j4".
struct SplitWord {
  std::string_view name;
  std::optional<std::string_view> value;
};

SplitWord split_word(std::string_view word) {
  if (!word.starts_with("--")) {
    if (word.size() == 2) return {word, std::nullopt};
    return {word.substr(0, 2), word.substr(word[2] == '=' ? 3 : 2)};
  }
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return {word, std::nullopt};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Arguments::Arguments(std::span<const std::string_view> positionals, std::span<const Option> options,
                     std::span<const std::string> words) {
  const bool open = !positionals.empty() &&
                    (positionals.back().ends_with("...") || positionals.back().ends_with("]"));
  const size_t fixed = positionals.size() - (open ? 1 : 0);
  bool options_ended = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (options_ended || word.size() < 2 || word[0] != '-') {
      if (open && positionals_.size() == fixed) {
        rest_.emplace_back(word);
        if (positionals.back() == kCommandWords) options_ended = true;
        continue;
      }
      if (positionals_.size() == fixed) {
        wrong(fmt::format("'{}' is one argument too many", printable(word)));
      }
      positionals_.emplace_back(word);
      continue;
    }
    if (word == "--") {
      options_ended = true;
      dashes_at_ = rest_.size();
      continue;
    }
    const auto [name, attached] = split_word(word);
    const Option* option = find_option(options, name);
    if (option == nullptr) unknown_option(options, name);
    if (option->name == kHelpOption.name) {
      asks_help_ = true;
      return;
    }
    auto& values = values_[std::string(option->name)];
    if (option->value.empty()) {
      if (attached) wrong(fmt::format("{} takes no value", option->name));
    } else if (attached && !attached->empty()) {
      values.emplace_back(*attached);
    } else if (!attached && i + 1 < words.size() && !words[i + 1].starts_with("--")) {
      values.push_back(words[++i]);
    } else {
      wrong(fmt::format("{0} needs a value: {0} {1}", option->name, option->value));
    }
  }
  if (positionals_.size() < fixed) {
    wrong(fmt::format("{} is missing", positionals[positionals_.size()]));
  }
}

std::vector<std::string> Arguments::values(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

std::optional<std::string> Arguments::value(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second.back();
}

std::optional<uint64_t> Arguments::number(std::string_view name, uint64_t least) const {
  const auto text = value(name);
  if (!text) return std::nullopt;
  const auto number = parse_number<uint64_t>(*text);
  if (!number || *number < least) {
    wrong(fmt::format("{} '{}': should be a whole number, {} or more", name, printable(*text),
                      least));
  }
  return number;
}

std::optional<uint64_t> Arguments::size(std::string_view name) const {
  const auto text = value(name);
  if (!text) return std::nullopt;
  const auto size = parse_size(*text);
  if (!size || *size == 0) {
    wrong(fmt::format("{} '{}': should be a size such as 512M, 1G or 1.5GiB", name,
                      printable(*text)));
  }
  return size;
}

std::optional<std::string> Arguments::choice(std::string_view name,
                                             std::span<const std::string_view> choices) const {
  auto text = value(name);
  if (!text || std::find(choices.begin(), choices.end(), *text) != choices.end()) return text;
  wrong(fmt::format("{} '{}': should be one of {}{}", name, printable(*text),
                    fmt::join(choices, ", "), suggestion(*text, choices)));
}

unsigned Arguments::jobs() const {
  constexpr uint64_t kMost = 4096;
  const uint64_t jobs = number(kJobsOption.name, 1).value_or(0);
  if (jobs > kMost) wrong(fmt::format("--jobs '{}': {} is the most that makes sense", jobs, kMost));
  return static_cast<unsigned>(jobs);
}

std::string suggestion(std::string_view word, std::span<const std::string_view> known) {
  const auto match = closest(word, known);
  return match ? fmt::format(", did you mean '{}'?", *match) : "";
}

std::string describe_options(std::span<const Option> options) {
  constexpr size_t kWidth = 20;
  std::string text;
  for (const Option& option : options) {
    std::string name = option.letter != 0 ? fmt::format("-{}, ", option.letter) : "    ";
    name += option.name;
    if (!option.value.empty()) name += fmt::format(" {}", option.value);
    std::string_view help = option.help;
    for (bool first = true; first || !help.empty(); first = false) {
      const size_t end = std::min(help.find('\n'), help.size());
      text += fmt::format("  {:<{}}  {}\n", first ? name : "", kWidth + 4, help.substr(0, end));
      help.remove_prefix(std::min(end + 1, help.size()));
    }
  }
  return text;
}

}  // namespace stoker
