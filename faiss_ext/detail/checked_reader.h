// SPDX-License-Identifier: MIT
#pragma once
/// \file checked_reader.h
/// check_index() can look at an index once it is read. A few numbers FAISS uses before, for the size of an array that
/// it fills at once: damaged ones take it out of its memory.

#include <faiss/impl/io.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace faiss_ext::detail {

/// Reads from a reader, and looks at what passes: an NSG's number of objects and of links, and the number of objects in
/// the quantizer of an IVFPQ.
class CheckedReader : public faiss::IOReader {
  public:
    /// \param from  outlives this one
    explicit CheckedReader(faiss::IOReader& from) : from_(from) { name = from.name; }
    /// \throws faiss::FaissException where one of these numbers cannot be
    size_t operator()(void* ptr, size_t size, size_t nitems) override;

  private:
    /// The first bytes of an index, which FAISS reads number by number.
    struct Beginning {
        bool nsg = false;  ///< otherwise an IVFPQ
        std::array<std::uint8_t, 80> bytes{};
        std::size_t count = 0;

        template <class T>
        T at(std::size_t offset) const;
        /// Looks at them once the last one that counts is there. \return true then
        bool checked() const;
    };

    faiss::IOReader& from_;
    std::vector<Beginning> beginnings_;  // of an index, and of one inside of it
};

}  // namespace faiss_ext::detail
