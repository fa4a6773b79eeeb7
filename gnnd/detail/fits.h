// SPDX-License-Identifier: MIT
#pragma once
/// \file fits.h
/// What is done where the memory holds what it takes, and gone without where it does not.

#include <new>

#include "gnnd/error.h"

namespace gnnd::detail {

/// Calls f. \return false where there is not the memory for it
template <class F>
bool fits(const F& f) {
    try {
        f();
    } catch (const std::bad_alloc&) {
        return false;
    } catch (const OutOfWorkMemory&) {
        return false;
    } catch (const OutOfDeviceMemory&) {
        return false;
    }
    return true;
}

}  // namespace gnnd::detail
