// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace stoker {

inline constexpr Option kBeforeJobOption{
    "--before-job", "", "do it in a job of its own, in a partition that sees both"};
inline constexpr Option kThenOption{"--then", "SCRIPT",
                                    "with --before-job: a job script to submit that begins\n"
                                    "when the dataset is there"};

/// The words of `stoker stage` that say how, for whoever stages in its place.
std::vector<std::string> staging_words(const Arguments& arguments);

/// `stoker stage --before-job`: submits the job that brings the dataset, or shows its script.
int stage_before_job(const Arguments& arguments);

}  // namespace stoker
