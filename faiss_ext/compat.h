#pragma once
/// \file compat.h
/// What differs between the FAISS versions 1.7.3 to 1.15; the only place that tests for a version.

#include <faiss/Index.h>
#include <faiss/impl/FaissException.h>

#define GNND_FAISS_VERSION (FAISS_VERSION_MAJOR * 10000 + FAISS_VERSION_MINOR * 100 + FAISS_VERSION_PATCH)

static_assert(GNND_FAISS_VERSION >= 10703, "faiss_ext needs FAISS 1.7.3 or later");

namespace faiss_ext {

/// faiss::idx_t; 1.7.3 has it inside of faiss::Index only.
using idx_t = decltype(faiss::Index::ntotal);

}  // namespace faiss_ext
