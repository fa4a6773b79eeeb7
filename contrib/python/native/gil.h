// SPDX-License-Identifier: MIT
#pragma once
/// \file gil.h
/// Giving the GIL away, and taking it, as nanobind's guards do, but for threads that are still at work when Python
/// ends.

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

namespace gnnd::python {

/// A thread that wants the GIL once the interpreter is being finalized gets none: up to Python 3.13 it is ended by
/// pthread_exit(), which unwinds its stack, and the first destructor or callback on the way ends the process by
/// std::terminate(). It waits for the end of the process here, as it does in Python 3.14; without asking, too, for soon
/// after there are no states of threads any more, and to ask for one reads freed memory.
template <class Take>
void take_gil(const Take& take) {
    while (Py_IsInitialized() == 0) pause();
    try {
        take();
    } catch (const abi::__forced_unwind&) {
        for (;;) pause();
    }
}

/// Others may run Python meanwhile.
class GilReleased {
  public:
    GilReleased() : state_(PyEval_SaveThread()) {}
    ~GilReleased() {
        take_gil([this] { PyEval_RestoreThread(state_); });
    }
    GilReleased(const GilReleased&) = delete;
    GilReleased& operator=(const GilReleased&) = delete;

  private:
    PyThreadState* state_;
};

/// This thread may call Python meanwhile, whether Python knows it or not.
class GilTaken {
  public:
    GilTaken() {
        take_gil([this] { state_ = PyGILState_Ensure(); });
    }
    ~GilTaken() { PyGILState_Release(state_); }
    GilTaken(const GilTaken&) = delete;
    GilTaken& operator=(const GilTaken&) = delete;

  private:
    PyGILState_STATE state_{};
};

}  // namespace gnnd::python
