// SPDX-License-Identifier: MIT
// GNND for FAISS: k-NN graphs after Wang, Zhao and Zeng, arXiv 2103.15386
#pragma once
/// \file init.h
/// Step 1 of GNND: how the lists start. To add a way: a struct in `inits` and its line in GNND_INITS. Both backends
/// take `pick` from here; what grows trees is a step of each (cpu/init.cpp, cuda/init).

#include <array>
#include <cstdint>
#include <string_view>

#include "gnnd/metric.h"

/// All of them: the struct in `inits`, whose name is also that in files and on the command line.
// clang-format off
#define GNND_INITS(apply) \
    apply(random)         \
    apply(projection)
// clang-format on

namespace gnnd {

/// The origin of the first neighbours; the structs of `inits` document them.
enum class Init {
#define GNND_INIT(name) name,
    GNND_INITS(GNND_INIT)
#undef GNND_INIT
};

namespace inits {

/// p random neighbours per object, as in the paper's Algorithm 1.
struct random {
    static constexpr std::string_view help = "p random neighbours, as in the paper";
    static constexpr bool trees = false;
    /// The j-th neighbour of an object: a number in [0, size), the set's objects. `hash` is uniform in 32 bits, another
    /// one for every object, j and try: what was picked before is tried again.
    GNND_HOST_DEVICE static std::uint32_t pick(std::uint32_t /*object*/, int /*j*/, std::uint32_t size,
                                               std::uint32_t hash) {
        return std::uint32_t(std::uint64_t(hash) * size >> 32);
    }
};

/// Random-projection trees; objects of one leaf become each other's neighbours.
struct projection {
    static constexpr std::string_view help = "random-projection trees";
    static constexpr bool trees = true;
};

}  // namespace inits

/// Throws InvalidArgument that tells the number.
[[noreturn]] void throw_unknown(Init init);

/// Calls f with the struct. \throws InvalidArgument for a number that is none
template <class F>
constexpr decltype(auto) visit(Init init, F&& f) {
    switch (init) {
#define GNND_INIT(name) \
    case Init::name:    \
        return f(inits::name{});
        GNND_INITS(GNND_INIT)
#undef GNND_INIT
    }
    throw_unknown(init);
}

#define GNND_INIT(name) Init::name,
/// All of them.
inline constexpr std::array kInits{GNND_INITS(GNND_INIT)};
#undef GNND_INIT

/// True where trees give the first neighbours.
inline bool grows_trees(Init init) {
    return visit(init, [](auto i) { return i.trees; });
}

/// The name on the command line and in files, for instance "random". \throws InvalidArgument for a number that is none
std::string_view name_of(Init init);
/// \throws InvalidArgument that lists the known names
Init parse_init(std::string_view name);

}  // namespace gnnd
