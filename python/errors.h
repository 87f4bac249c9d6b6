// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace stoker::python {

/// Lets every Error of the library arrive as the Python exception that a Python programmer expects.
void register_errors();

}  // namespace stoker::python
