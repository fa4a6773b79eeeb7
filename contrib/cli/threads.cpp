// SPDX-License-Identifier: MIT
#include "threads.h"

#include <omp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <latch>
#include <new>
#include <string>
#include <thread>
#include <vector>

// OpenBLAS starts its threads while it is loaded, before main(): it asks this function of its own how many there shall
// be, and takes the program's answer where the program has one. Without it a process that may have no more threads dies
// of a signal that OpenBLAS raises, and one with little address space never ends. Other BLAS libraries do not ask.
extern "C" {
__attribute__((weak)) int openblas_num_threads_env() {
    return 1;
}
__attribute__((weak)) void openblas_set_num_threads(int threads);
__attribute__((weak)) void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                                  const int* k, const float* alpha, const float* a, const int* lda, const float* b,
                                  const int* ldb, const float* beta, float* c, const int* ldc);
}

namespace cli {

namespace {

int most_threads = 0;  // that a command may use at a time; 0: no limit was found

/// The number of `wanted` threads that the system starts beside this one, all at a time.
int startable(int wanted) {
    std::latch counted(1);
    std::vector<std::thread> threads;
    try {
        threads.reserve(std::size_t(wanted));
        while (int(threads.size()) < wanted) threads.emplace_back([&] { counted.wait(); });
    } catch (const std::exception&) {  // no more of them, or no memory for one
    }
    counted.count_down();
    for (std::thread& thread : threads) thread.join();
    return int(threads.size());
}

/// Bytes of address space that the process may have.
rlim_t address_space() {
    rlimit limit{};
    return getrlimit(RLIMIT_AS, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

/// OpenBLAS asks for its work memory again and again until it gets it: make sure that it does.
void take_blas_memory() {
    constexpr std::size_t kMost = std::size_t(256) << 20;  // more than it takes on any processor
    void* space = mmap(nullptr, kMost, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) throw std::bad_alloc();
    munmap(space, kMost);
    if (sgemm_ == nullptr) return;
    constexpr int kSize = 256;  // below, it may do without the memory
    const std::vector<float> zeros(std::size_t(kSize) * kSize);
    std::vector<float> product(zeros.size());
    const float one = 1, zero = 0;
    sgemm_("N", "N", &kSize, &kSize, &kSize, &one, zeros.data(), &kSize, zeros.data(), &kSize, &zero, product.data(),
           &kSize);
}

}  // namespace

void limit_threads(char** argv) {
    // A build in shards has up to three teams at work at a time, and some threads for reading and writing.
    constexpr int kTeams = 3, kOthers = 8;
    const int team = omp_get_max_threads();
    int started = startable(kTeams * team + kOthers);
    // A thread takes this much of the address space while it runs: its stack, and an arena of malloc's.
    constexpr rlim_t kThreadBytes = rlim_t(256) << 20;
    if (address_space() != RLIM_INFINITY)
        started = int(std::min<rlim_t>(rlim_t(started), address_space() / kThreadBytes));
    if (started == kTeams * team + kOthers) return;
    most_threads = std::clamp((started - kOthers) / kTeams, 1, team);
    if (most_threads == team) return;
    // For all threads of the process OpenMP learns it only from the environment, before it starts.
    setenv("OMP_NUM_THREADS", std::to_string(most_threads).c_str(), 1);
    execv("/proc/self/exe", argv);
    omp_set_num_threads(most_threads);  // for this thread at least, where there is no /proc
}

int allowed_threads(int threads) {
    if (most_threads == 0) return threads;
    return threads == 0 ? most_threads : std::min(threads, most_threads);
}

void use_blas() {
    if (address_space() != RLIM_INFINITY) return take_blas_memory();  // its other threads would take as much each
    if (openblas_set_num_threads == nullptr) return;
    const char* asked = std::getenv("OPENBLAS_NUM_THREADS");
    const int threads = asked != nullptr ? std::atoi(asked) : 0;
    openblas_set_num_threads(threads > 0 ? allowed_threads(threads) : omp_get_max_threads());
}

}  // namespace cli
