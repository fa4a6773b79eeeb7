// SPDX-License-Identifier: MIT
// gnnd._native: the C++ library as it is. The package around it gives it Python's shape.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <omp.h>

#include <cctype>
#include <string>
#include <string_view>

#include "arrays.h"
#include "build.h"
#include "convert.h"
#include "device_memory.h"
#include "files.h"
#include "gil.h"
#include "gnnd/device.h"
#include "gnnd/error.h"
#include "gnnd/version.h"
#include "links.h"
#include "lists.h"
#include "manifest.h"
#include "near.h"
#include "operations.h"
#include "search.h"
#include "shards.h"
#include "tool.h"
#include "values.h"

namespace gnnd::python {

namespace {

/// "BuildParams::k = 2000" as "k = 2000": in Python it is an argument.
std::string in_python(std::string text) {
    constexpr std::string_view kParams = "Params::";
    for (std::size_t at = text.find(kParams); at != std::string::npos; at = text.find(kParams)) {
        std::size_t begin = at;
        while (begin > 0 && std::isalpha(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
        text.erase(begin, at + kParams.size() - begin);
    }
    return text;
}

/// Exceptions of Python's kinds, with the C++ text.
void translate(const std::exception_ptr& pointer, void* /*payload*/) {
    // A message may hold a file's name, which need be no text.
    const auto raise = [](PyObject* type, const std::exception& error) {
        PyErr_SetObject(type, to_str(in_python(error.what())).ptr());
    };
    try {
        std::rethrow_exception(pointer);
    } catch (const InvalidArgument& error) {
        raise(PyExc_ValueError, error);
    } catch (const IoError& error) {
        raise(PyExc_OSError, error);
    } catch (const OutOfDeviceMemory& error) {
        raise(PyExc_MemoryError, error);
    } catch (const OutOfWorkMemory& error) {
        raise(PyExc_MemoryError, error);
    } catch (const Error& error) {
        raise(PyExc_RuntimeError, error);
    }
}

}  // namespace

}  // namespace gnnd::python

NB_MODULE(_native, module) {
    using namespace gnnd::python;  // NOLINT(google-build-using-namespace)
    nb::set_leak_warnings(false);  // what threads hold that are at work when Python ends is no leak
    nb::register_exception_translator(translate);
    module.attr("version") = GNND_VERSION_STRING;
    module.def("params_fields", &params_fields);
    module.def("device_count", [] {
        std::string why;
        const int count = gnnd::device_count(&why);
        return nb::make_tuple(count, why);
    });
    module.def(
        "device_of", [](std::uintptr_t pointer) { return gnnd::device_of(reinterpret_cast<const void*>(pointer)); },
        nb::arg("pointer"));
    module.def("synchronize", &synchronize, nb::arg("device"), nb::arg("stream"), nb::call_guard<GilReleased>());
    module.def("pause_threads", [] { omp_pause_resource_all(omp_pause_hard); });
    // OpenMP counts them for each thread that begins a region: those of this one have so many from here on, 0 is
    // refused.
    module.def(
        "limit_threads",
        [](int threads) {
            const int before = omp_get_max_threads();
            if (threads > 0) omp_set_num_threads(threads);
            return before;
        },
        nb::arg("threads"));
    bind_arrays(module);
    bind_build(module);
    bind_files(module);
    bind_links(module);
    bind_lists(module);
    bind_manifest(module);
    bind_near(module);
    bind_operations(module);
    bind_search(module);
    bind_shards(module);
    bind_tool(module);
    bind_values(module);
}
