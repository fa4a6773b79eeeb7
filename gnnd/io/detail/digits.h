// SPDX-License-Identifier: MIT
#pragma once
/// \file digits.h
/// Numbers of float64 that become float32: none of the digits by which vectors differ is lost without a word.

#include <cstdint>
#include <string>
#include <vector>

#include "gnnd/io/detail/mapped_file.h"
#include "gnnd/io/detail/vector_layouts.h"

namespace gnnd::io::detail {

/// The mean of the two middle ones where their number is even. \param values  come in another order
double median(std::vector<double>& values);
/// For people: two digits that count.
std::string two_digits(double value);

/// Every how many of n vectors are the sample by which it is told what float32 takes.
std::int64_t digits_step(std::int64_t n, std::int64_t d);

/// \param name  whose vectors these are
/// \param rows  a sample of them, n x d
/// \throws InvalidArgument where float32 lacks the digits by which they differ, as of 1e12 + i: the error of more than
///         half of them is more than 1/256 of their distance from the median
void require_digits(const std::string& name, const double* rows, std::int64_t n, std::int64_t d);

/// The same of a file of float64.
void require_digits(const std::string& path, const MappedFile& file, const FileShape& shape);

}  // namespace gnnd::io::detail
