#include "route/linear_algebra.h"

#include <algorithm>

#include <Eigen/Cholesky>

#include "base/check.h"
#include "base/parallel.h"

namespace waybill::route {
namespace {

using Eigen::Index;
using Eigen::MatrixXf;

// Columns (or rows) per piece of work: long enough for Eigen's packing to pay, short enough to share among
// threads.
constexpr Index kBlock = 192;

// work(first, count) for blocks of [0, size).
template <class Work>
void for_blocks(Index size, unsigned threads, const Work& work) {
  parallel_for(static_cast<std::size_t>((size + kBlock - 1) / kBlock), threads, [&](std::size_t b) {
    const Index first = static_cast<Index>(b) * kBlock;
    work(first, std::min(kBlock, size - first));
  });
}

void mirror(MatrixXf& lower, unsigned threads) {
  for_blocks(lower.cols(), threads, [&](Index first, Index count) {
    for (Index c = first; c < first + count; ++c) lower.col(c).head(c) = lower.row(c).head(c).transpose();
  });
}

}  // namespace

MatrixXf transposed_product(const Eigen::Ref<const MatrixXf>& a, const Eigen::Ref<const MatrixXf>& b,
                            unsigned threads) {
  MatrixXf out(a.cols(), b.cols());
  if (out.rows() > out.cols()) {
    for_blocks(out.rows(), threads, [&](Index first, Index count) {
      out.middleRows(first, count).noalias() = a.middleCols(first, count).transpose() * b;
    });
  } else {
    for_blocks(out.cols(), threads, [&](Index first, Index count) {
      out.middleCols(first, count).noalias() = a.transpose() * b.middleCols(first, count);
    });
  }
  return out;
}

MatrixXf product(const Eigen::Ref<const MatrixXf>& a, const Eigen::Ref<const MatrixXf>& b, unsigned threads) {
  MatrixXf out(a.rows(), b.cols());
  if (out.rows() > out.cols()) {
    for_blocks(out.rows(), threads, [&](Index first, Index count) {
      out.middleRows(first, count).noalias() = a.middleRows(first, count) * b;
    });
  } else {
    for_blocks(out.cols(), threads, [&](Index first, Index count) {
      out.middleCols(first, count).noalias() = a * b.middleCols(first, count);
    });
  }
  return out;
}

MatrixXf gram_of_rows(const MatrixXf& a, unsigned threads) {
  const Index size = a.rows();
  MatrixXf gram(size, size);
  for_blocks(size, threads, [&](Index first, Index count) {
    const MatrixXf right = a.middleRows(first, count).transpose();
    gram.block(first, first, size - first, count).noalias() = a.bottomRows(size - first) * right;
  });
  mirror(gram, threads);
  return gram;
}

// Right-looking: a block of columns is factored, and what it explains is taken from all columns after it.
void cholesky_in_place(MatrixXf& matrix, unsigned threads) {
  const Index size = matrix.rows();
  for (Index at = 0; at < size; at += kBlock) {
    const Index count = std::min(kBlock, size - at), after = at + count, rest = size - after;
    auto diagonal = matrix.block(at, at, count, count);
    const Eigen::LLT<Eigen::Ref<MatrixXf>, Eigen::Lower> factored(diagonal);
    WAYBILL_CHECK(factored.info() == Eigen::Success);
    for_blocks(rest, threads, [&](Index first, Index rows) {
      auto below = matrix.block(after + first, at, rows, count);
      diagonal.triangularView<Eigen::Lower>().transpose().solveInPlace<Eigen::OnTheRight>(below);
    });
    for_blocks(rest, threads, [&](Index first, Index columns) {
      const auto panel = matrix.block(after + first, at, rest - first, count);
      matrix.block(after + first, after + first, rest - first, columns).noalias() -=
          panel * panel.topRows(columns).transpose();
    });
  }
  matrix.triangularView<Eigen::StrictlyUpper>().setZero();
}

MatrixXf inverse_of_lower(const MatrixXf& lower, unsigned threads) {
  const Index size = lower.rows();
  MatrixXf inverse = MatrixXf::Zero(size, size);
  for_blocks(size, threads, [&](Index first, Index count) {
    auto columns = inverse.block(first, first, size - first, count);
    columns.topRows(count).setIdentity();
    lower.bottomRightCorner(size - first, size - first).triangularView<Eigen::Lower>().solveInPlace(columns);
  });
  return inverse;
}

MatrixXf gram_of_lower(const MatrixXf& lower, unsigned threads) {
  const Index size = lower.rows();
  MatrixXf gram(size, size);
  for_blocks(size, threads, [&](Index first, Index count) {
    // Rows from `first` on are all that the block's columns have. By blocks of the other factor, whose zeros
    // are skipped.
    for (Index other = first; other < size; other += kBlock) {
      const Index width = std::min(kBlock, size - other);
      gram.block(other, first, width, count).noalias() =
          lower.block(other, other, size - other, width).transpose() *
          lower.block(other, first, size - other, count);
    }
  });
  mirror(gram, threads);
  return gram;
}

void solve_lower(const MatrixXf& lower, MatrixXf& x, unsigned threads) {
  for_blocks(x.cols(), threads, [&](Index first, Index count) {
    auto block = x.middleCols(first, count);
    lower.triangularView<Eigen::Lower>().solveInPlace(block);
  });
}

}  // namespace waybill::route
