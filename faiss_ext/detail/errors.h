// SPDX-License-Identifier: MIT
#pragma once
/// \file errors.h
/// faiss_ext throws faiss::FaissException and nothing else.

#include <exception>
#include <new>
#include <string>
#include <utility>

#include "faiss_ext/compat.h"
#include "gnnd/builder.h"
#include "gnnd/error.h"

namespace faiss_ext::detail {

[[noreturn]] inline void fail(const std::string& message) {
    throw faiss::FaissException(message);
}

/// Throws as FAISS does when faiss::InterruptCallback asks for it. Not for parallel regions.
void check_interrupt();

/// The same question as gnnd asks it.
gnnd::Callbacks interrupt_hooks();

/// f()'s result; whatever it throws leaves as FaissException with the same text.
template <class F>
decltype(auto) with_faiss_errors(F&& f) {
    try {
        return std::forward<F>(f)();
    } catch (const faiss::FaissException&) {
        throw;
    } catch (const gnnd::Interrupted&) {
        fail("computation interrupted");  // FAISS's own words
    } catch (const std::bad_alloc&) {
        fail("out of memory");
    } catch (const std::exception& error) {
        fail(error.what());
    }
}

}  // namespace faiss_ext::detail
