// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

// Words in names of files, directories and arrays that say which split they are of.

using Words = std::vector<std::string>;

/// Whether a word, in lower case, names a split: "train", "validation".
bool is_split_word(std::string_view word);

/// Letters that belong together, in lower case: "imagesTrain_2017" is images, train; so are X and
/// train in "Xtrain".
Words words_of(std::string_view name);

/// The first word that names a split; empty: there is none.
std::string split_word_of(std::string_view name);

/// Whether a name is that of a split and nothing else but numbers: "train", "val2017".
bool is_split_name(std::string_view name);

/// Whether two names are those of one field in two splits: "x_train" and "x_test", "images" and
/// "val_images".
bool differ_in_split(std::string_view a, std::string_view b);

/// Numbers of the names by split, where some of them differ in it alone. Those without a split are
/// under "". Nothing where all may be fields of the same samples.
std::map<std::string, std::vector<size_t>> group_by_split(std::span<const std::string> names);

}  // namespace stoker
