// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace stoker {

// Names that come out of a file (a manifest, a segment, a plan, a list of shards) were chosen by
// the person who wrote that file. They become paths below a directory only after one of these
// functions has accepted them: where such a name is parsed, not where it is used.

/// Why a name cannot be that of something inside; empty where it can. An empty or absolute name, a
/// NUL byte and '..' as a component are refused.
std::string_view unsafe_name(std::string_view path);

/// The same for a path that is opened, written or removed, which also has no empty component and no
/// '.'.
std::string_view unsafe_path(std::string_view path);

/// `path`, which `file` names. Throws Error(corrupt) unless it stays inside.
std::string inner_path(std::string path, std::string_view file);
/// The same for what can only be one component: a segment, a shard that `pack` writes.
std::string inner_name(std::string name, std::string_view file);

}  // namespace stoker
