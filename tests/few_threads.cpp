// SPDX-License-Identifier: MIT
// Preloaded into the tool: a system that starts no more than GNND_FEW_THREADS threads at a time, as under `ulimit -u`,
// which root is exempt from.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>

namespace {

std::atomic<int> running{0};

struct Start {
    void* (*routine)(void*);
    void* argument;
};

void* run(void* given) {
    const std::unique_ptr<Start> start(static_cast<Start*>(given));
    void* result = start->routine(start->argument);
    --running;
    return result;
}

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                              void* argument) {
    static const auto create = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
    static const char* const most = std::getenv("GNND_FEW_THREADS");
    if (++running > (most != nullptr ? std::atoi(most) : 0)) {
        --running;
        return EAGAIN;
    }
    return create(thread, attributes, run, new Start{routine, argument});
}
