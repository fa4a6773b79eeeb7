// SPDX-License-Identifier: MIT
#include "hooks.h"

#include "convert.h"

namespace gnnd::python {

namespace {

/// Taking the GIL may wait for another thread's turn, which is 5 ms: builds ask more often than that.
constexpr auto kBetweenQuestions = std::chrono::milliseconds(20);

}  // namespace

bool Hooks::interrupted() {
    if (raised_) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now - asked_ < kBetweenQuestions) return false;
    asked_ = now;
    const GilTaken gil;
    if (PyErr_CheckSignals() != 0) raised_.emplace();
    return raised_.has_value();
}

void Hooks::report(const nb::object& record) {
    try {
        progress_(record);
    } catch (nb::python_error& error) {
        raised_.emplace(std::move(error));
    }
}

Callbacks Hooks::callbacks() {
    Callbacks callbacks;
    callbacks.interrupt = [this] { return interrupted(); };
    if (!progress_.is_none())
        callbacks.progress = [this](const IterationStats& iteration) {
            const GilTaken gil;
            if (!raised_) report(to_dict(iteration));
        };
    return callbacks;
}

ShardCallbacks Hooks::shard_callbacks() {
    ShardCallbacks callbacks;
    callbacks.interrupt = [this] { return interrupted(); };
    if (!progress_.is_none())
        callbacks.progress = [this](const ShardProgress& progress) {
            const GilTaken gil;
            if (!raised_) report(to_dict(progress));
        };
    return callbacks;
}

}  // namespace gnnd::python
