// SPDX-License-Identifier: MIT
#pragma once
/// \file index_rows.h
/// The storage of a graph index: vectors as they are, or codes of a quantizer.

#include <faiss/IndexFlat.h>
#include <faiss/IndexFlatCodes.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "faiss_ext/vector_source.h"

namespace faiss_ext::detail {

/// The storage. \throws faiss::FaissException that names the index, unless it is an IndexFlat, IndexScalarQuantizer or
/// IndexPQ of so many objects and components as the index
faiss::IndexFlatCodes& codes_of(const faiss::Index& index, faiss::Index* storage);

/// True where the storage does not keep vectors as they were given to it.
bool compresses(const faiss::Index& storage);

/// The vectors of a storage as floats, and others behind them: the storage itself where it keeps them so, otherwise
/// what its codes decode to.
class FloatRows {
  public:
    /// \param storage  stays as it is; must outlive this where it does not compress
    explicit FloatRows(const faiss::IndexFlatCodes& storage) : FloatRows(storage, storage.ntotal, 0, nullptr) {}
    /// \param first  so many objects of the storage count
    /// \param n      vectors behind them; of a storage that does not compress these are its next ones
    /// \param x      n x d
    FloatRows(const faiss::IndexFlatCodes& storage, idx_t first, idx_t n, const float* x);

    const faiss::IndexFlat& flat() const { return decoded_ ? *decoded_ : *kept_; }

  private:
    const faiss::IndexFlat* kept_ = nullptr;
    std::optional<faiss::IndexFlat> decoded_;
};

/// A view of rows [begin, end).
VectorSource view_rows(const faiss::IndexFlat& rows, idx_t begin, idx_t end, gnnd::Metric metric);

/// A copy of some of the rows.
faiss::IndexFlat copy_rows(const faiss::IndexFlat& rows, const std::vector<std::int32_t>& objects);

/// Codes of vectors that a storage has for the time of a change, unless they are kept.
class AddedRows {
  public:
    /// \param x  n x d, encoded as the storage's add() would
    AddedRows(faiss::IndexFlatCodes& storage, idx_t n, const float* x);
    AddedRows(const AddedRows&) = delete;
    AddedRows& operator=(const AddedRows&) = delete;
    ~AddedRows();
    void keep() { kept_ = true; }

  private:
    faiss::IndexFlatCodes& storage_;
    idx_t before_;
    bool kept_ = false;
};

/// An empty storage that keeps vectors as another one does, trained as that one is.
std::unique_ptr<faiss::IndexFlatCodes> empty_like(const faiss::IndexFlatCodes& storage);

/// Codes of two storages, one behind the other, that another storage has for the time of a change, unless they are
/// kept.
class JoinedRows {
  public:
    /// \param storage  whose rows they become: `first` itself, or one of its kind
    /// \param n        vectors behind those of `first`
    /// \param x        n x d, encoded as the storage's add() would
    JoinedRows(faiss::IndexFlatCodes& storage, const faiss::IndexFlatCodes& first, idx_t n, const float* x);
    JoinedRows(const JoinedRows&) = delete;
    JoinedRows& operator=(const JoinedRows&) = delete;
    ~JoinedRows();
    void keep() { kept_ = true; }

  private:
    void exchange();

    faiss::IndexFlatCodes& storage_;
    decltype(faiss::IndexFlatCodes::codes) codes_;  // the others
    idx_t count_;                                   // so many
    bool kept_ = false;
};

/// Of a storage only these objects stay, ascending; they move up. Throws nothing.
void keep_rows(faiss::IndexFlatCodes& storage, const std::vector<std::int32_t>& objects);

}  // namespace faiss_ext::detail
