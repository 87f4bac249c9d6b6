// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace stoker {

/// Names one process for others that find the name in a file: "HOST,BOOT,NAMESPACE,PID,START".
/// Fit for a file name. Neither a process that got the same number later nor one behind a restart
/// of the host has the same.
std::string this_process_mark();

enum class Alive { yes, no, unknown };

/// Whether that process still runs; unknown where it is not of this host, or of another container's
/// numbers. What is no such name is no process.
Alive process_lives(std::string_view mark);

/// Whether a process of this host is stopped: by SIGSTOP, by a debugger, or suspended with its job,
/// be it by a signal or by freezing its control group.
bool process_is_stopped(std::string_view mark);

/// "process 4711 on n1".
std::string process_in_words(std::string_view mark);

}  // namespace stoker
