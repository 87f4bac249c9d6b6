// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace stoker {

/// Billionths of a second on a clock that nobody sets; the one that Python's perf_counter_ns() has.
int64_t monotonic_ns();
int64_t time_of_day_ns();
/// On a core, of this thread.
int64_t thread_cpu_ns();

/// This host's name; "localhost" where it has none.
std::string host_name();
/// The name that Slurm has for this node; the host's outside of a job.
std::string node_name();

/// Who runs this process; its number where it has no name.
std::string user_name();
/// Whether there is a user of this name, or number.
bool is_user(const std::string& name);
/// Whether the user of this number has this name; a number without one is its own name.
bool has_name(uint32_t user, const std::string& name);

/// Empty where the number has no name.
std::string name_of_user(uint32_t user);
/// A user as messages name one: "eve (2003)", or "user 2003" where the number has no name.
std::string user_in_words(uint32_t user);

/// The path of this program, which other nodes find where its directory is shared; `otherwise`
/// where it is not known.
std::string own_program(const std::string& otherwise);

/// A variable of the environment; empty where it is not set.
std::string environment(const char* name);

/// $XDG_CACHE_HOME, or ~/.cache.
std::string cache_directory();
/// $XDG_CONFIG_HOME, or ~/.config.
std::string config_directory();
/// $XDG_STATE_HOME, or ~/.local/state.
std::string state_directory();

}  // namespace stoker
