// SPDX-License-Identifier: MIT
#pragma once
/// \file params_table.h
/// The one table of BuildParams' fields. validate(), the tool's options and JSON, the manifest of a graph in shards and
/// the benchmarks' settings read it.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "gnnd/params.h"

namespace gnnd::detail {

template <class T>
struct Field {
    const char* name;  ///< as in BuildParams and in JSON; on the command line with - for _
    T BuildParams::*member;
    const char* help;            ///< for the command line
    T low{}, high{};             ///< allowed, for numbers
    const char* zero = nullptr;  ///< of numbers: what 0 stands for, which is allowed too then
    bool decides_graph = true;   ///< the graph depends on it; the others may differ where a build is resumed
    bool counts_bytes = false;   ///< sizes as 8GiB are understood

    T of(const BuildParams& params) const { return params.*member; }
    T standard() const { return BuildParams{}.*member; }
};

/// Calls f with the Field of every field, in the order in which help shows them.
template <class F>
constexpr void for_each_field(F&& f) {
    using P = BuildParams;
    f(Field<int>{"k", &P::k, "neighbours per object", 1, kMaxK});
    f(Field<Metric>{"metric", &P::metric, "what orders the neighbours"});
    f(Field<int>{"samples", &P::samples, "NEW and OLD samples per list, the paper's p", 1, kMaxK, "chosen from k"});
    f(Field<int>{"iterations", &P::iterations, "at most so many iterations", 0, 1'000'000'000});
    f(Field<float>{"delta", &P::delta,
                   "stop when fewer than delta * n * k entries change in one, in a merge earlier; 0: never", 0, 1});
    f(Field<float>{"recall", &P::recall,
                   "go on until the graph has this recall, as far as the limits given allow; 0: until delta says, "
                   "1: the exact graph",
                   0, 1});
    f(Field<int>{"recall_at", &P::recall_at, "nearest neighbours that --recall counts, at most k", 1, kMaxK,
                 "10, or k if that is less"});
    f(Field<int>{"list_size", &P::list_size, "length of the lists while building, at least k", 1, kMaxK,
                 "chosen from k and samples"});
    f(Field<Init>{"init", &P::init, "what the lists start from"});
    f(Field<int>{"trees", &P::trees, "number of projection trees", 1, 1024, "as many as pay"});
    f(Field<Update>{"update", &P::update, "auto (the fastest), selective (the paper's) or all (classic NN-Descent)"});
    f(Field<Locks>{"locks", &P::locks,
                   "what a spinlock covers on a GPU with --update selective: segment (of 32 entries) or list"});
    f(Field<Codes>{"codes", &P::codes, "what a GPU's iterations compare in place of floats: auto, none, int8 or pca"});
    f(Field<std::uint64_t>{"seed", &P::seed, "of all random choices", 0, std::numeric_limits<std::uint64_t>::max()});
    f(Field<bool>{
        "deterministic", &P::deterministic,
        "the same seed gives the same graph bit for bit on a GPU too, more slowly; on the CPU it always does"});
    f(Field<int>{"threads", &P::threads, "CPU threads", 1, 4096, "all", false});
    f(Field<Device>{"device", &P::device, "where to run", {}, {}, nullptr, false});
    f(Field<std::int64_t>{"device_memory", &P::device_memory,
                          "most GPU memory to take, in bytes or as 8GiB; less makes the build slower", 1,
                          std::int64_t(1) << 50, "what is free", false, true});
}

/// The fields' values as text, as the command line and JSON spell them.
std::string text_of(bool value);
std::string text_of(int value);
std::string text_of(std::int64_t value);
std::string text_of(std::uint64_t value);
std::string text_of(float value);  ///< the shortest that gives the same float
inline std::string text_of(const Device& value) {
    return value.name();
}
template <class E>
std::string text_of(E value) requires std::is_enum_v<E> {
    return std::string(name_of(value));
}

/// The inverse. \throws InvalidArgument for other texts, and lists the names that are known
void parse(std::string_view text, bool& value);
void parse(std::string_view text, int& value);
void parse(std::string_view text, std::int64_t& value);
void parse(std::string_view text, std::uint64_t& value);
void parse(std::string_view text, float& value);
inline void parse(std::string_view text, Metric& value) {
    value = parse_metric(text);
}
inline void parse(std::string_view text, Init& value) {
    value = parse_init(text);
}
inline void parse(std::string_view text, Update& value) {
    value = parse_update(text);
}
inline void parse(std::string_view text, Locks& value) {
    value = parse_locks(text);
}
inline void parse(std::string_view text, Codes& value) {
    value = parse_codes(text);
}
inline void parse(std::string_view text, Device& value) {
    value = Device::parse(text);
}

/// The names of an enumeration, "a, b, c".
std::string known_names(Metric);
std::string known_names(Init);
std::string known_names(Update);
std::string known_names(Locks);
std::string known_names(Codes);

}  // namespace gnnd::detail
