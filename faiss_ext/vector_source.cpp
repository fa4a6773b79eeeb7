// SPDX-License-Identifier: MIT
#include "faiss_ext/vector_source.h"

#include <faiss/IndexFlat.h>
#include <faiss/IndexHNSW.h>
#include <faiss/IndexIDMap.h>
#include <faiss/IndexIVF.h>
#include <faiss/IndexNNDescent.h>
#include <faiss/IndexNSG.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/IndexRefine.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <typeinfo>

#include "faiss_ext/detail/class_name.h"
#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/gpu.h"
#include "faiss_ext/detail/rows.h"
#include "gnnd/device.h"

namespace faiss_ext {

using detail::class_of;
using detail::fail;

namespace {

constexpr idx_t kBlock = 4096;  // rows decoded by one call

/// Runs f, which asks the index for vectors; its failure becomes an error that names the index's class.
template <class F>
void reconstructing(const faiss::Index& index, F&& f) {
    try {
        f();
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& error) {
        fail("VectorSource: " + class_of(index) + " cannot reconstruct its vectors: " + error.what());
    }
}

/// The index that a wrapper or a graph index keeps its vectors in; null when there is none, `index` for the others.
const faiss::Index* storage_of(const faiss::Index* index) {
    if (auto* p = dynamic_cast<const faiss::IndexIDMap*>(index)) return p->index;
    if (auto* p = dynamic_cast<const faiss::IndexPreTransform*>(index)) return p->index;
    if (auto* p = dynamic_cast<const faiss::IndexRefine*>(index)) return p->refine_index;
    if (auto* p = dynamic_cast<const faiss::IndexHNSW*>(index)) return p->storage;
    if (auto* p = dynamic_cast<const faiss::IndexNSG*>(index)) return p->storage;
    if (auto* p = dynamic_cast<const faiss::IndexNNDescent*>(index)) return p->storage;
    return index;
}

int number_in_faiss(gnnd::Metric metric) {
    return gnnd::visit(metric, [](auto m) { return m.faiss_metric; });
}

}  // namespace

bool detail::holds_plain_rows(const faiss::Index& index) {
    const std::type_info& type = typeid(index);
    return type == typeid(faiss::IndexFlat) || type == typeid(faiss::IndexFlatL2) ||
           type == typeid(faiss::IndexFlatIP) || type == typeid(faiss::IndexFlat1D);
}

static_assert(gnnd::metrics::L2::faiss_metric == faiss::METRIC_L2);
static_assert(gnnd::metrics::InnerProduct::faiss_metric == faiss::METRIC_INNER_PRODUCT);
static_assert(gnnd::metrics::L1::faiss_metric == faiss::METRIC_L1);
static_assert(gnnd::metrics::Linf::faiss_metric == faiss::METRIC_Linf);

gnnd::Metric to_gnnd_metric(faiss::MetricType metric) {
    std::string known;
    for (const gnnd::Metric candidate : gnnd::kMetrics) {
        const int number = number_in_faiss(candidate);
        if (number < 0) continue;
        if (number == int(metric)) return candidate;
        known += (known.empty() ? "" : ", ") + std::string(gnnd::name_of(candidate));
    }
    fail("FAISS metric number " + std::to_string(int(metric)) + " has no counterpart here; there are " + known);
}

faiss::MetricType to_faiss_metric(gnnd::Metric metric) {
    return detail::with_faiss_errors([&] {
        const int number = number_in_faiss(metric);
        if (number < 0)
            fail("FAISS has no metric " + std::string(gnnd::name_of(metric)) +
                 (gnnd::is_normalized(metric) ? ": it is ip of normalised vectors, 'L2norm' in a description" : ""));
        return faiss::MetricType(number);
    });
}

std::optional<faiss::MetricType> searched_metric(gnnd::Metric metric) {
    return detail::with_faiss_errors([&]() -> std::optional<faiss::MetricType> {
        if (gnnd::is_normalized(metric)) return faiss::METRIC_INNER_PRODUCT;
        const int number = number_in_faiss(metric);
        return number < 0 ? std::nullopt : std::optional(faiss::MetricType(number));
    });
}

/// Made once, whoever asks first.
struct VectorSource::HostCopy {
    std::once_flag once;
    std::atomic<bool> made = false;
    std::vector<std::byte> bytes;
    gnnd::VectorView view;
};

VectorSource::VectorSource(const faiss::Index* index) {
    detail::with_faiss_errors([&] {
        read(index);
        locate();
    });
}

VectorSource::VectorSource(const gnnd::VectorView& vectors, gnnd::Metric metric) : view_(vectors), metric_(metric) {
    if (vectors.data == nullptr || vectors.n <= 0 || vectors.d <= 0)
        fail("VectorSource: there are no vectors (n = " + std::to_string(vectors.n) +
             ", d = " + std::to_string(vectors.d) + (vectors.data == nullptr ? ", null pointer)" : ")"));
    locate();
}

void VectorSource::locate() {
    device_ = gnnd::device_of(view_.data);
    if (device_ >= 0) host_copy_ = std::make_shared<HostCopy>();
}

const gnnd::VectorView& VectorSource::on_host() const {
    if (device_ < 0) return view_;
    std::call_once(host_copy_->once, [&] {
        host_copy_->bytes.resize(std::size_t(view_.n) * view_.d * size_of(view_.dtype));
        gnnd::copy_to_host(view_, host_copy_->bytes.data());
        host_copy_->view = {host_copy_->bytes.data(), view_.n, view_.d, view_.dtype, 0};
        host_copy_->made = true;
    });
    return host_copy_->view;
}

bool VectorSource::copied_to_host() const {
    return host_copy_ != nullptr && host_copy_->made;
}

void VectorSource::read(const faiss::Index* index) {
    if (index == nullptr) fail("VectorSource: the index is null");
    const faiss::Index* storage = storage_of(index);
    if (storage == nullptr) fail("VectorSource: " + class_of(*index) + " has no index inside that holds vectors");
    if (storage != index) {
        read(storage);
        auto* map = dynamic_cast<const faiss::IndexIDMap*>(index);
        if (map == nullptr) return;
        std::vector<idx_t> ids(view_.n);
        for (idx_t row = 0; row < view_.n; ++row) {
            const idx_t inner = id_of(row);
            if (inner < 0 || inner >= idx_t(map->id_map.size()))
                fail("VectorSource: " + class_of(*index) + " maps " + std::to_string(map->id_map.size()) +
                     " ids, the index inside has id " + std::to_string(inner));
            ids[row] = map->id_map[inner];
        }
        ids_ = std::move(ids);
        return;
    }
    metric_ = to_gnnd_metric(index->metric_type);
    if (!index->is_trained) fail("VectorSource: " + class_of(*index) + " is not trained and holds no vectors");
    if (index->ntotal <= 0 || index->d <= 0)
        fail("VectorSource: " + class_of(*index) + " is empty (n = " + std::to_string(index->ntotal) +
             ", d = " + std::to_string(index->d) + ")");
    view_ = {nullptr, index->ntotal, index->d, gnnd::DType::f32, 0};
    if (detail::holds_plain_rows(*index)) {
        view_.data = static_cast<const faiss::IndexFlat*>(index)->get_xb();
        return;
    }
    reconstructing(*index, [&] {
        std::unique_ptr<faiss::Index> copy;
        if (detail::read_gpu_index(*index, view_, copy)) {
            copy_ = std::move(copy);
            if (copy_) read(copy_.get());
            if (decoded_) copy_.reset();
            return;
        }
        if (dynamic_cast<const faiss::IndexIVF*>(index) != nullptr)
            read_inverted_lists(*index);
        else
            read_rows(*index);
    });
    if (decoded_) view_.data = decoded_->data();
}

void VectorSource::read_rows(const faiss::Index& index) {
    const std::int64_t n = view_.n, d = view_.d;
    // An index that cannot reconstruct says so at the first row. Only then may whole blocks be asked for: FAISS decodes
    // them in parallel, and what is thrown there ends the process.
    std::vector<float> probe(d);
    index.reconstruct(0, probe.data());
    decoded_ = std::make_shared<std::vector<float>>(std::size_t(n) * d);
    if (dynamic_cast<const faiss::IndexFlatCodes*>(&index) != nullptr) {
        for (idx_t begin = 0; begin < n; begin += kBlock)
            index.reconstruct_n(begin, std::min(kBlock, n - begin), decoded_->data() + begin * d);
    } else {
        for (idx_t i = 0; i < n; ++i) index.reconstruct(i, decoded_->data() + i * d);
    }
}

void VectorSource::read_inverted_lists(const faiss::Index& index) {
    const auto& ivf = dynamic_cast<const faiss::IndexIVF&>(index);
    if (ivf.invlists == nullptr) fail("there are no inverted lists");
    struct Entry {
        idx_t id;
        std::size_t list, offset;
    };
    std::vector<Entry> entries;
    entries.reserve(view_.n);
    for (std::size_t list = 0; list < ivf.invlists->nlist; ++list) {
        const std::size_t size = ivf.invlists->list_size(list);
        if (size == 0) continue;
        const faiss::InvertedLists::ScopedIds ids(ivf.invlists, list);
        for (std::size_t offset = 0; offset < size; ++offset) entries.push_back({ids[offset], list, offset});
    }
    if (entries.empty()) fail("the inverted lists are empty");
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.id < b.id; });

    view_.n = std::int64_t(entries.size());
    decoded_ = std::make_shared<std::vector<float>>(entries.size() * view_.d);
    std::vector<idx_t> ids(entries.size());
    bool plain = true;
    for (std::size_t row = 0; row < entries.size(); ++row) {
        const auto& [id, list, offset] = entries[row];
        ivf.reconstruct_from_offset(std::int64_t(list), std::int64_t(offset), decoded_->data() + row * view_.d);
        ids[row] = id;
        plain = plain && id == idx_t(row);
    }
    if (!plain) ids_ = std::move(ids);
}

std::vector<idx_t> to_faiss_ids(const gnnd::KnnGraphView& graph, const VectorSource& source) {
    return detail::with_faiss_errors([&] {
        const std::int64_t n = source.vectors().n;
        std::vector<idx_t> ids(std::size_t(graph.n) * graph.k);
        for (std::size_t i = 0; i < ids.size(); ++i) {
            const std::int32_t row = graph.ids[i];
            if (row < -1 || row >= n)
                fail("to_faiss_ids: entry " + std::to_string(row) + " of row " + std::to_string(i / graph.k) +
                     " is no row of the source, which has " + std::to_string(n));
            ids[i] = row < 0 ? -1 : source.id_of(row);
        }
        return ids;
    });
}

}  // namespace faiss_ext
