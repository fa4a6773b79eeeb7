// SPDX-License-Identifier: MIT
#pragma once
/// \file values.h
/// Scalars that Python gives, each read in one way: numbers, texts, names of files. What is wrong is told by its name.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace gnnd::python {

namespace nb = nanobind;

/// The text of a str; what is no text in UTF-8, as a surrogate, is escaped.
std::string text_of(nb::handle str);
/// A str of text that C++ has made; bytes in it that are no UTF-8, as those of a file's name, are escaped.
nb::str to_str(std::string_view text);
/// A file's name, both ways: bytes that are no UTF-8 are surrogates in Python's, as os.fsdecode() has them.
std::string path_of(nb::handle str);
nb::str path_to_str(const std::string& path);

/// A value that Python gives for an argument.
/// \tparam T  bool, int, std::int64_t, std::uint64_t, float, double or std::string
/// \param low, high  what is allowed, for the message about a whole number that T does not hold
/// \throws nb::type_error that names the argument and the value where it is of another kind, InvalidArgument for
///         numbers that T does not hold
template <class T>
T value_of(const std::string& name, nb::handle value, T low = std::numeric_limits<T>::min(),
           T high = std::numeric_limits<T>::max());
/// Bytes, as a number or as a text that the tool takes: "8GiB".
std::int64_t bytes_of(const std::string& name, nb::handle value);

/// Arguments by their names.
class Arguments {
  public:
    explicit Arguments(nb::dict given) : given_(std::move(given)) {}
    template <class T>
    T get(const char* name) const {
        return value_of<T>(name, given_[name]);
    }
    bool is_none(const char* name) const { return given_[name].is_none(); }

  private:
    nb::dict given_;
};

/// whole(), real() and bytes_of(), by which the package checks what it works on itself.
void bind_values(nb::module_& module);

}  // namespace gnnd::python
