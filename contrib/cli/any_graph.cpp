// SPDX-License-Identifier: MIT
#include "any_graph.h"

#include <algorithm>

#include "gnnd/error.h"
#include "interrupt.h"

namespace cli {

AnyGraph::AnyGraph(const std::string& path) : path_(path) {
    if (gnnd::ShardedGraph::is_one(path))
        sharded_ = std::make_unique<const gnnd::ShardedGraph>(path);
    else
        file_ = std::make_unique<const gnnd::io::GraphFile>(path);
}

void AnyGraph::require_fit(const gnnd::io::VectorFile& base) const {
    require_whole();
    require_narrow();
    if (n() != base.n())
        throw gnnd::InvalidArgument(path_ + ": has " + std::to_string(n()) + " rows, " + base.path() + " has " +
                                    std::to_string(base.n()) + " vectors");
    if (const std::optional<gnnd::io::BaseIdentity> expected = this->base())
        require_base_of(path_, *expected, base.path(), identify(base));
    else if (dtype() != base.dtype())
        throw gnnd::InvalidArgument(path_ + " was not built from " + base.path() + ": dtype is " +
                                    std::string(name_of(base.dtype())) + ", expected " + std::string(name_of(dtype())));
}

void AnyGraph::require_whole() const {
    if (objects() != n())
        throw gnnd::InvalidArgument(path_ + ": holds " + std::to_string(n()) + " rows of a graph of " +
                                    std::to_string(objects()) + " objects, not the whole");
}

void AnyGraph::require_narrow() const {
    if (objects() > gnnd::kMaxObjects)
        throw gnnd::InvalidArgument(path_ + ": is of " + std::to_string(objects()) +
                                    " objects; what works on a graph in memory takes " +
                                    std::to_string(gnnd::kMaxObjects) + " at most");
}

gnnd::KnnGraph AnyGraph::read() const {
    require_whole();
    return read(0, n());
}

gnnd::KnnGraph AnyGraph::read(std::int64_t begin, std::int64_t count) const {
    require_narrow();
    if (file_) return file_->read(begin, count);
    gnnd::KnnGraph graph(count, k(), metric());
    std::vector<std::int64_t> ids(std::size_t(count * k()));
    sharded_->read(begin, count, ids.data(), graph.distances());
    std::copy(ids.begin(), ids.end(), graph.ids());
    return graph;
}

void AnyGraph::read_into(std::int64_t begin, std::int64_t count, std::int64_t* ids, float* distances) const {
    if (file_)
        file_->read_into(begin, count, ids, distances);
    else
        sharded_->read(begin, count, ids, distances);
}

gnnd::KnnGraph AnyGraph::rows_of(const std::vector<std::int32_t>& objects) const {
    constexpr std::int64_t kSpanBytes = 1 << 20;  // what is read and verified at once in any case
    const std::int64_t span = std::max<std::int64_t>(1, kSpanBytes / (k() * 8));
    gnnd::KnnGraph rows(std::int64_t(objects.size()), k(), metric());
    for (std::size_t first = 0, last = 0; first < objects.size(); first = last) {
        stop_if_interrupted();
        while (last < objects.size() && objects[last] < objects[first] + span) ++last;
        const gnnd::KnnGraph part = read(objects[first], objects[last - 1] - objects[first] + 1);
        for (std::size_t i = first; i < last; ++i) {
            const std::int64_t from = objects[i] - objects[first], to = std::int64_t(i) * k();
            std::copy_n(part.ids_of(from), k(), rows.ids() + to);
            std::copy_n(part.distances_of(from), k(), rows.distances() + to);
        }
    }
    return rows;
}

}  // namespace cli
