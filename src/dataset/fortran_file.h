// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "os/file_system.h"

namespace stoker {

/// An .npy file in Fortran order as the one that it would be in C order. Rows are brought together
/// from all over the file, many at a time: reading forward costs each byte once, reading here and
/// there far more. Throws Error(corrupt) where the file is no such array.
std::unique_ptr<ReadableFile> as_c_order(std::unique_ptr<ReadableFile> file,
                                         const std::string& path);

}  // namespace stoker
