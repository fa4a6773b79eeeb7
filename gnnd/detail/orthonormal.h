// SPDX-License-Identifier: MIT
#pragma once
/// \file orthonormal.h
/// Columns that are made orthonormal by a product with a small matrix.

namespace gnnd::detail {

/// For Y with `size` columns whose products are the Gram matrix Y'Y, a matrix M such that the columns of Y M are
/// orthonormal and span what those of Y do (Cholesky's decomposition Y'Y = R'R, M = R^-1). Columns that depend on those
/// before them, and such as are not finite, become zero.
/// \param gram  size x size, symmetric; changed
/// \param out   size x size, row-major, written: M, upper triangular
void orthonormalize(double* gram, int size, float* out);

}  // namespace gnnd::detail
