// SPDX-License-Identifier: MIT
#pragma once
/// \file faiss_links.h
/// Links as FAISS's graph indexes keep them.

#include <faiss/IndexHNSW.h>
#include <faiss/IndexNSG.h>

#include "faiss_ext/detail/link_tree.h"

namespace faiss_ext::detail {

/// FAISS 1.7.3 counts an NSG's links in int. \throws faiss::FaissException when there are more; `who` asks
void check_links(const char* who, std::int64_t n, std::int64_t links);

/// Gives the index these links in place of its own. What is thrown leaves it as it was.
/// \param links  of so many objects as its storage holds, of its degrees; their memory becomes the index's
void set_links(faiss::IndexNSG& index, LinkTree&& links);
void set_links(faiss::IndexHNSW& index, LinkTree&& links);

/// Makes room for the links of n objects in an index that set_links() or this gave its links; those of the present
/// objects stay as they are, those behind them, on level 0, are -1. Copies all now and then only.
/// \return where the index keeps them, see layout_of()
std::int32_t* make_room(faiss::IndexNSG& index, std::int64_t n);
std::int32_t* make_room(faiss::IndexHNSW& index, std::int64_t n);

/// Of the links that there is room for, those of the first n objects are the index's. Throws nothing.
void set_count(faiss::IndexNSG& index, std::int64_t n);
void set_count(faiss::IndexHNSW& index, std::int64_t n);

/// True where the links are those of n objects, by their number, and there are places for those of one of them.
bool links_are_of(const faiss::IndexNSG& index, std::int64_t n);
bool links_are_of(const faiss::IndexHNSW& index, std::int64_t n);
bool has_links(const faiss::IndexNSG& index, std::int64_t object);
bool has_links(const faiss::IndexHNSW& index, std::int64_t object);

/// \throws faiss::FaissException unless the index has places for links of every object
void require_links(const faiss::IndexNSG& index);
void require_links(const faiss::IndexHNSW& index);

/// The links of an object, those of level 0 of an HNSW: as many as degree_of() says, -1 behind the last.
const std::int32_t* links_of(const faiss::IndexNSG& index, std::int64_t object);
const std::int32_t* links_of(const faiss::IndexHNSW& index, std::int64_t object);
int degree_of(const faiss::IndexNSG& index);
int degree_of(const faiss::IndexHNSW& index);
/// Links of an object on each level above 0, where links of n objects are chosen; 0: all are on one level, as in an
/// NSG, and in an HNSW whose table has not as many levels, or has levels of several degrees.
int upper_degree_for(const faiss::IndexNSG& index, std::int64_t n);
int upper_degree_for(const faiss::IndexHNSW& index, std::int64_t n);

/// Where the links lie in the index, until there are others.
gnnd::detail::LinkLayout layout_of(const faiss::IndexNSG& index);
gnnd::detail::LinkLayout layout_of(const faiss::IndexHNSW& index);

/// The object that searches start from.
std::int32_t entry_of(const faiss::IndexNSG& index);
std::int32_t entry_of(const faiss::IndexHNSW& index);

}  // namespace faiss_ext::detail
