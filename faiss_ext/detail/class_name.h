// SPDX-License-Identifier: MIT
#pragma once
/// \file class_name.h
/// The name of the class of an index, for messages.

#include <cxxabi.h>
#include <faiss/Index.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>

namespace faiss_ext::detail {

/// "faiss::IndexFlatL2"
inline std::string class_of(const faiss::Index& index) {
    const char* mangled = typeid(index).name();
    const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr),
                                                      std::free);
    return name ? name.get() : mangled;
}

}  // namespace faiss_ext::detail
