// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "os/file_system.h"

namespace stoker {

/// One of the datasets that share a directory: some of its files, or a sub-directory.
struct Split {
  std::string name;                 // "train", as in DIRECTORY::train
  std::string directory;            // relative to the directory; empty: its files are at the top
  std::vector<std::string> files;   // names, sorted; empty: everything in its sub-directory
  std::vector<std::string> others;  // names that mean it, too: "mnist-train"
};

/// What stands for all splits of a directory as one dataset: DIRECTORY::all.
inline constexpr std::string_view kAllSplits = "all";

/// By names of shards: "train-00000-of-00002.parquet", "mnist-test.tfrecord-00000-of-00001". Names
/// of other files are ignored. One where all shards are of one split, none where no name says.
std::vector<Split> splits_of_files(const std::vector<std::string>& names);
/// By names of sub-directories: "train", "val2017", "images_test". None, or several.
std::vector<Split> splits_of_directories(const std::vector<std::string>& names);

/// The splits of a directory: two or more are several datasets. Looks at names, at what
/// sub-directories are not empty, and at the dataset_dict.json of `save_to_disk`.
/// Throws where the directory cannot be listed.
std::vector<Split> find_splits(FileSystem& files, const std::string& root);
/// The one that `name` means; null: none.
const Split* find_split(const std::vector<Split>& splits, std::string_view name);
/// The sub-directory that is meant by the directory: the only one that holds something, apart from
/// those that describe a dataset (`assets/`), where it is a split ("train"), has splits, or holds
/// shards: "data" in a repository of the Hugging Face hub, "3.0.1" of TensorFlow Datasets. So is
/// "data" with classes in it. Empty: none.
std::string only_data_directory(FileSystem& files, const std::string& root);

/// Whether a name is that of a file with many samples in it, by its ending.
bool is_shard_ending(std::string_view name);
/// The same without arrays, each of which may be a sample of a folder.
bool holds_many_samples(std::string_view name);
/// Whether a shard may as well be one of the files of a folder.
bool may_be_of_folder(std::string_view name);
/// Whether a file next to shards may describe them, and is no sample: "README.md".
bool may_describe(std::string_view name);
/// Whether a sub-directory next to data describes it: "assets".
bool is_describing_directory(std::string_view name);
/// "a, b and 3 more"
std::string names_of_directories(const std::vector<std::string>& directories);

/// What else a question about splits has to name.
struct DirectoryContents {
  std::vector<std::string> other_directories;  // next to those of splits
  bool shards = false;                         // the sub-directories hold shards
};
DirectoryContents look_around(FileSystem& files, const std::string& root,
                              const std::vector<Split>& splits);

/// A directory was named that holds several datasets.
class SeveralSplits : public Error {
 public:
  SeveralSplits(std::string root, std::vector<Split> splits,
                const DirectoryContents& contents = {});

  const std::string& root() const { return root_; }
  const std::vector<Split>& splits() const { return splits_; }
  /// What else the directory could be: the end of the message, with its semicolon; may be empty.
  const std::string& other_reading() const { return other_reading_; }

 private:
  std::string other_reading_;
  std::string root_;
  std::vector<Split> splits_;
};

/// "train::images" of a split and what of its files is meant, each of which may be empty.
std::string part_name(const std::string& split, const std::string& inner);
/// "D::train (2 files), D::test (1 file)"
std::string names_of_splits(const std::string& root, const std::vector<Split>& splits);

}  // namespace stoker
