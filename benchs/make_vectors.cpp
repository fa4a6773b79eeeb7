// SPDX-License-Identifier: MIT
// Writes generated vectors to a file, on the host, so that every tool and every peer is given the same.
//
//   make_vectors manifold:100000:96:12 deep.fbin      (n, d, intrinsic dimension; see generate.h)
//   make_vectors hard:gauss:100000:32 gauss.fbin      (name, n and, if not the set's own, d; see hard.h)
//   make_vectors mix:base.u8bin:1000000 mix.u8bin     (rows like those of a uint8 file, see generate.h)
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

#include "benchs/generate.h"
#include "benchs/hard.h"
#include "gnnd/builder.h"
#include "gnnd/error.h"
#include "gnnd/io/vector_file.h"

namespace {

using gnnd::InvalidArgument;

/// Rows made and written at a time.
constexpr std::int64_t kAtOnce = 100'000;

std::int64_t number(const std::string& text, std::int64_t low, std::int64_t high) {
    std::int64_t value = 0;
    try {
        std::size_t used = 0;
        value = std::stoll(text, &used);
        if (used != text.size()) throw std::invalid_argument(text);
    } catch (const std::exception&) {
        throw InvalidArgument("'" + text + "' is no whole number");
    }
    if (value < low || value > high)
        throw InvalidArgument(text + " is not allowed, allowed are " + std::to_string(low) + " to " +
                              std::to_string(high));
    return value;
}

/// Makes all rows of d values, some at a time, by all threads, and writes them. `make` is given a row and its place.
template <class T, class Make>
void write(const std::string& path, std::int64_t n, std::int64_t d, gnnd::DType dtype, const Make& make) {
    gnnd::io::VectorWriter writer(path, n, d, dtype);
    std::vector<T> rows(std::size_t(std::min(n, kAtOnce) * d));
    for (std::int64_t begin = 0; begin < n; begin += kAtOnce) {
        const std::int64_t count = std::min(kAtOnce, n - begin);
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < count; ++i) make(begin + i, rows.data() + i * d);
        writer.append(rows.data(), count);
    }
    writer.commit();
}

void write_manifold(const std::string& path, std::int64_t n, std::int64_t d, int m, std::uint64_t seed) {
    const gnnd::benchs::Manifold manifold{d, m, seed};
    std::vector<float> parameters(std::size_t(manifold.parameters()));
    for (std::size_t at = 0; at < parameters.size(); ++at) parameters[at] = manifold.parameter(std::int64_t(at));
    write<float>(path, n, d, gnnd::DType::f32,
                 [&](std::int64_t row, float* x) { manifold.row(parameters.data(), row, x); });
}

/// The rows come one after the other from one random sequence.
void write_hard(const std::string& path, const std::string& name, std::int64_t n, std::int64_t d) {
    const std::vector<float> rows = gnnd::benchs::make_hard(name, n, d);
    gnnd::io::write_vectors(path, {rows.data(), n, d, gnnd::DType::f32, 0});
}

void write_mix(const std::string& path, const std::string& base_path, std::int64_t n, std::uint64_t seed) {
    const gnnd::io::VectorFile base(base_path);
    const gnnd::VectorView view = base.view();
    if (view.dtype != gnnd::DType::u8 || view.n <= gnnd::benchs::Mix::kNearest)
        throw InvalidArgument(base_path + ": a mix is made of uint8 vectors, of more than " +
                              std::to_string(gnnd::benchs::Mix::kNearest));
    const gnnd::KnnGraph graph = gnnd::build(view, gnnd::BuildParams{}).graph;
    const gnnd::benchs::Mix mix{
        static_cast<const std::uint8_t*>(view.data), graph.ids(), view.n, view.d, graph.k(), seed};
    write<std::uint8_t>(path, n, view.d, gnnd::DType::u8, [&](std::int64_t row, std::uint8_t* x) {
        const gnnd::benchs::Mix::Recipe recipe = mix.recipe(row);
        for (std::int64_t c = 0; c < view.d; ++c) x[c] = mix.value(recipe, c);
    });
}

void run(const std::string& text, const std::string& path, std::uint64_t seed) {
    std::vector<std::string> parts;
    std::stringstream stream(text);
    for (std::string part; std::getline(stream, part, ':');) parts.push_back(part);
    const std::int64_t most = gnnd::kMaxObjects;
    const std::string kind = parts.empty() ? "" : parts[0];
    if (kind == "manifold" && parts.size() == 4)
        write_manifold(path, number(parts[1], 1, most), number(parts[2], 1, gnnd::kMaxDim),
                       int(number(parts[3], 1, gnnd::benchs::Manifold::kMaxM)), seed);
    else if (kind == "hard" && (parts.size() == 3 || parts.size() == 4))
        write_hard(path, parts[1], number(parts[2], 1, most),
                   parts.size() == 4 ? number(parts[3], 1, gnnd::kMaxDim) : 0);
    else if (kind == "mix" && parts.size() == 3)
        write_mix(path, parts[1], number(parts[2], 1, most), seed);
    else
        throw InvalidArgument("'" + text + "' is none of manifold:N:D:M, hard:NAME:N[:D] and mix:FILE:N");
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app{"Writes generated vectors to a file."};
    std::string text, path;
    std::uint64_t seed = 1;
    app.add_option("what", text, "manifold:N:D:M, hard:NAME:N[:D] or mix:FILE:N")->required();
    app.add_option("out", path, "vector file to write: fbin, for mix u8bin, or another that holds the type")
        ->required();
    app.add_option("--seed", seed, "of manifold and mix; hard sets have one of their own")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        run(text, path, seed);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "make_vectors: %s\n", error.what());
        return 1;
    }
    return 0;
}
