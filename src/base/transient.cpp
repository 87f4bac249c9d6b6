// SPDX-License-Identifier: Apache-2.0
#include "base/transient.h"

#include <cerrno>

namespace stoker {

bool is_transient(int os_error) {
  switch (os_error) {
    case EIO:
    case ESTALE:
    case ETIMEDOUT:
    case EREMOTEIO:
    case ECONNRESET:
    case ECONNABORTED:
    case ENOTCONN:
    case ESHUTDOWN:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case EAGAIN:
    case ENOMEM:
    case ENOBUFS:
    case EMFILE:
    case ENFILE:
      return true;
    default:
      return false;
  }
}

}  // namespace stoker
