// Dense linear algebra in f32 on several threads: what Eigen does on one. Every function gives the same bits
// for any number of threads (0: one per core).
#pragma once

#include <Eigen/Core>

namespace waybill::route {

// a' b; a [k, m], b [k, n].
[[nodiscard]] Eigen::MatrixXf transposed_product(const Eigen::Ref<const Eigen::MatrixXf>& a,
                                                 const Eigen::Ref<const Eigen::MatrixXf>& b,
                                                 unsigned threads);

// a b; a [m, k], b [k, n].
[[nodiscard]] Eigen::MatrixXf product(const Eigen::Ref<const Eigen::MatrixXf>& a,
                                      const Eigen::Ref<const Eigen::MatrixXf>& b, unsigned threads);

// a a', both triangles; a [m, k].
[[nodiscard]] Eigen::MatrixXf gram_of_rows(const Eigen::MatrixXf& a, unsigned threads);

// matrix = L with L L' = matrix, read from the lower triangle of a positive definite matrix; zeros above it.
// The caller has added to the diagonal what rounding may take away: some 1e-6 of the largest eigenvalue.
void cholesky_in_place(Eigen::MatrixXf& matrix, unsigned threads);

// L^-1 of a lower triangular L with zeros above the diagonal; lower triangular too.
[[nodiscard]] Eigen::MatrixXf inverse_of_lower(const Eigen::MatrixXf& lower, unsigned threads);

// L' L of a lower triangular L, both triangles: of L = cholesky^-1, the inverse of a positive definite
// matrix.
[[nodiscard]] Eigen::MatrixXf gram_of_lower(const Eigen::MatrixXf& lower, unsigned threads);

// x = L^-1 x.
void solve_lower(const Eigen::MatrixXf& lower, Eigen::MatrixXf& x, unsigned threads);

}  // namespace waybill::route
