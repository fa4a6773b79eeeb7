// SPDX-License-Identifier: MIT
#include "faiss_ext/detail/index_rows.h"

#include <faiss/IndexPQ.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/clone_index.h>

#include <cstring>
#include <typeinfo>
#include <utility>

#include "faiss_ext/detail/class_name.h"
#include "faiss_ext/detail/errors.h"
#include "faiss_ext/detail/pages.h"
#include "faiss_ext/detail/rows.h"
#include "gnnd/cpu/copy.h"
#include "gnnd/cpu/parallel.h"

namespace faiss_ext::detail {

namespace {

/// FAISS's product quantizer asks for memory in a parallel region, which ends the process where there is none; row by
/// row it does not.
void encode(const faiss::IndexFlatCodes& storage, idx_t n, const float* x, std::uint8_t* codes) {
    const auto* quantizer = dynamic_cast<const faiss::IndexPQ*>(&storage);
    if (holds_plain_rows(storage)) {
        const auto* rows = reinterpret_cast<const std::uint8_t*>(x);
        return gnnd::cpu::copy_parallel(rows, std::size_t(n) * storage.code_size, codes);
    }
    if (quantizer == nullptr) return storage.sa_encode(n, x, codes);
    const gnnd::Callbacks hooks = interrupt_hooks();
    const gnnd::cpu::Team team{gnnd::cpu::Team::resolve(0), &hooks.interrupt};
    team.for_chunks(n, 64, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
            quantizer->pq.compute_code(x + i * storage.d, codes + i * storage.code_size);
    });
}

}  // namespace

faiss::IndexFlatCodes& codes_of(const faiss::Index& index, faiss::Index* storage) {
    auto* codes = dynamic_cast<faiss::IndexFlatCodes*>(storage);
    if (codes == nullptr || !(holds_plain_rows(*codes) || compresses(*codes)))
        fail(class_of(index) + " keeps its vectors neither as a faiss::IndexFlat nor as codes of a quantizer");
    const bool whole = codes->codes.size() == std::size_t(codes->ntotal) * codes->code_size;
    if (!whole || codes->ntotal != index.ntotal || codes->d != index.d)
        fail(class_of(index) + " does not fit its storage");
    return *codes;
}

bool compresses(const faiss::Index& storage) {
    return dynamic_cast<const faiss::IndexScalarQuantizer*>(&storage) != nullptr ||
           dynamic_cast<const faiss::IndexPQ*>(&storage) != nullptr;
}

FloatRows::FloatRows(const faiss::IndexFlatCodes& storage, idx_t first, idx_t n, const float* x) {
    if (!compresses(storage)) {
        kept_ = dynamic_cast<const faiss::IndexFlat*>(&storage);
        return;
    }
    faiss::IndexFlat& rows = decoded_.emplace(storage.d, storage.metric_type);
    rows.codes.resize(std::size_t(first + n) * rows.code_size);
    rows.ntotal = first + n;
    if (first > 0) storage.sa_decode(first, storage.codes.data(), rows.get_xb());
    if (n > 0) std::memcpy(rows.get_xb() + first * rows.d, x, std::size_t(n) * rows.code_size);
}

VectorSource view_rows(const faiss::IndexFlat& rows, idx_t begin, idx_t end, gnnd::Metric metric) {
    return {{rows.get_xb() + begin * rows.d, end - begin, rows.d, gnnd::DType::f32, 0}, metric};
}

faiss::IndexFlat copy_rows(const faiss::IndexFlat& rows, const std::vector<std::int32_t>& objects) {
    faiss::IndexFlat copy(rows.d, rows.metric_type);
    copy.codes.resize(objects.size() * copy.code_size);
    copy.ntotal = idx_t(objects.size());
    for (std::size_t i = 0; i < objects.size(); ++i)
        std::memcpy(copy.get_xb() + i * rows.d, rows.get_xb() + std::int64_t(objects[i]) * rows.d, copy.code_size);
    return copy;
}

AddedRows::AddedRows(faiss::IndexFlatCodes& storage, idx_t n, const float* x)
    : storage_(storage), before_(storage.ntotal) {
    const std::size_t bytes = storage.code_size;
    grow_with_pages(storage.codes, std::size_t(before_ + n) * bytes);
    try {
        encode(storage, n, x, storage.codes.data() + std::size_t(before_) * bytes);
    } catch (...) {
        storage.codes.resize(std::size_t(before_) * bytes);
        throw;
    }
    storage.ntotal = before_ + n;
}

AddedRows::~AddedRows() {
    if (kept_) return;
    storage_.codes.resize(std::size_t(before_) * storage_.code_size);
    storage_.ntotal = before_;
}

std::unique_ptr<faiss::IndexFlatCodes> empty_like(const faiss::IndexFlatCodes& storage) {
    std::unique_ptr<faiss::Index> empty;
    // FAISS has copies of all of a storage only, which take long where vectors are kept as they are.
    if (typeid(storage) == typeid(faiss::IndexFlatL2))
        empty = std::make_unique<faiss::IndexFlatL2>(storage.d);
    else if (typeid(storage) == typeid(faiss::IndexFlatIP))
        empty = std::make_unique<faiss::IndexFlatIP>(storage.d);
    else if (typeid(storage) == typeid(faiss::IndexFlat))
        empty = std::make_unique<faiss::IndexFlat>(storage.d, storage.metric_type);
    else
        empty.reset(faiss::clone_index(&storage));
    empty->reset();
    empty->verbose = storage.verbose;
    return std::unique_ptr<faiss::IndexFlatCodes>(&dynamic_cast<faiss::IndexFlatCodes&>(*empty.release()));
}

JoinedRows::JoinedRows(faiss::IndexFlatCodes& storage, const faiss::IndexFlatCodes& first, idx_t n, const float* x)
    : storage_(storage), count_(first.ntotal + n) {
    const std::size_t bytes = storage.code_size, before = std::size_t(first.ntotal) * bytes;
    grow_with_pages(codes_, std::size_t(count_) * bytes);
    gnnd::cpu::copy_parallel(first.codes.data(), before, codes_.data());
    encode(storage, n, x, codes_.data() + before);
    exchange();
}

void JoinedRows::exchange() {
    std::swap(storage_.codes, codes_);
    std::swap(storage_.ntotal, count_);
}

JoinedRows::~JoinedRows() {
    if (!kept_) exchange();
}

void keep_rows(faiss::IndexFlatCodes& storage, const std::vector<std::int32_t>& objects) {
    std::uint8_t* to = storage.codes.data();
    for (const std::int32_t object : objects) {
        std::memmove(to, storage.codes.data() + std::size_t(object) * storage.code_size, storage.code_size);
        to += storage.code_size;
    }
    storage.codes.resize(objects.size() * storage.code_size);
    storage.ntotal = idx_t(objects.size());
}

}  // namespace faiss_ext::detail
