// SPDX-License-Identifier: Apache-2.0
#include "dataset/split_words.h"

#include <algorithm>
#include <array>

namespace stoker {
namespace {

constexpr std::array<std::string_view, 19> kSplitWords = {
    "train",     "training",   "trainval", "val",         "valid",       "validation", "test",
    "testing",   "dev",        "devel",    "development", "eval",        "evaluation", "minival",
    "unlabeled", "unlabelled", "holdout",  "heldout",     "unsupervised"};

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || is_upper(c); }
char lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

/// Whether a word begins at a letter: "x|Train", "X|Train", "x_|train".
bool begins_word(std::string_view name, size_t at) {
  if (at == 0 || !is_letter(name[at - 1])) return true;
  if (!is_upper(name[at])) return false;
  const bool before_lower =
      at + 1 < name.size() && is_letter(name[at + 1]) && !is_upper(name[at + 1]);
  return !is_upper(name[at - 1]) || before_lower;
}

Words without_split(Words words) {
  std::erase_if(words, [](const std::string& word) { return is_split_word(word); });
  return words;
}

/// "depth" of "depth_valid".
std::string before_mask(const std::string& name) {
  const size_t end = name.find_last_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
  return end == std::string::npos ? "" : name.substr(0, end);
}

}  // namespace

bool is_split_word(std::string_view word) {
  return std::find(kSplitWords.begin(), kSplitWords.end(), word) != kSplitWords.end();
}

Words words_of(std::string_view name) {
  Words words;
  for (size_t i = 0; i < name.size(); ++i) {
    if (!is_letter(name[i])) continue;
    if (begins_word(name, i)) words.emplace_back();
    words.back() += lower(name[i]);
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i];
    const bool array = word.size() > 1 && (word[0] == 'x' || word[0] == 'y');
    if (!array || !is_split_word(std::string_view(word).substr(1))) continue;
    words[i] = word.substr(0, 1);
    words.insert(words.begin() + static_cast<ptrdiff_t>(++i), word.substr(1));
  }
  return words;
}

std::string split_word_of(std::string_view name) {
  const Words words = words_of(name);
  const auto found = std::find_if(words.begin(), words.end(), is_split_word);
  return found == words.end() ? "" : *found;
}

bool is_split_name(std::string_view name) {
  const Words words = words_of(name);
  return words.size() == 1 && is_split_word(words.front());
}

bool differ_in_split(std::string_view a, std::string_view b) {
  return !group_by_split(std::array{std::string(a), std::string(b)}).empty();
}

std::map<std::string, std::vector<size_t>> group_by_split(std::span<const std::string> names) {
  constexpr std::string_view kMask = "valid";
  std::map<std::string, std::vector<size_t>> by_split;
  std::map<Words, std::string> splits;  // of the first name with these words
  bool several = false;
  for (size_t i = 0; i < names.size(); ++i) {
    const Words words = words_of(names[i]);
    // "depth_valid" next to "depth" is its mask, unless there are other splits.
    const bool mask = words.size() > 1 && words.back() == kMask &&
                      std::find(names.begin(), names.end(), before_mask(names[i])) != names.end();
    const std::string split = mask ? "" : split_word_of(names[i]);
    by_split[split].push_back(i);
    if (mask) continue;
    const Words rest = without_split(words);
    if (rest.empty() && split.empty()) continue;  // a number
    const auto [first, fresh] = splits.emplace(rest, split);
    several = several || (!fresh && first->second != split);
  }
  if (!several) by_split.clear();
  return by_split;
}

}  // namespace stoker
