#include "embed/static_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <utility>

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <immintrin.h>

#include "base/check.h"

namespace waybill::embed {
namespace {

using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Index = Eigen::Index;

constexpr std::size_t kColumns = 64;
constexpr Index kBlock = 64;  // pairs summed up at a time

Index index(std::size_t n) { return static_cast<Index>(n); }

// 64 columns of W x + b; `weights`: [inputs + 1][64].
void apply_columns(std::span<const float> x, const float* weights, float* out) noexcept {
  __m256 sums[8];
  const float* bias = weights + x.size() * kColumns;
  for (std::size_t i = 0; i < 8; ++i) sums[i] = _mm256_loadu_ps(bias + 8 * i);
  for (std::size_t j = 0; j < x.size(); ++j, weights += kColumns) {
    const __m256 factor = _mm256_set1_ps(x[j]);
    for (std::size_t i = 0; i < 8; ++i)
      sums[i] = _mm256_fmadd_ps(factor, _mm256_loadu_ps(weights + 8 * i), sums[i]);
  }
  for (std::size_t i = 0; i < 8; ++i) _mm256_storeu_ps(out + 8 * i, sums[i]);
}

}  // namespace

void StaticMap::apply(std::span<const float> x, std::span<float> out) const noexcept {
  WAYBILL_CHECK(x.size() == static_dim_ && out.size() == full_dim_);
  const std::size_t block_size = (static_dim_ + 1) * kColumns;
  float square = 0;
  for (std::size_t column = 0; column < full_dim_; column += kColumns) {
    std::array<float, kColumns> sums;
    apply_columns(x, &weights_[column / kColumns * block_size], sums.data());
    const std::size_t count = std::min(kColumns, full_dim_ - column);
    for (std::size_t i = 0; i < count; ++i) square += sums[i] * sums[i];
    std::copy_n(sums.data(), count, &out[column]);
  }
  if (square <= 0) return;
  const float factor = 1 / std::sqrt(square);
  for (float& y : out) y *= factor;
}

struct StaticMapLearner::Impl {
  // Some pairs, as rows.
  struct Block {
    Block(std::size_t static_dim, std::size_t full_dim)
        : x(Rows::Ones(kBlock, index(static_dim + 1))), y(Rows::Zero(kBlock, index(full_dim))) {}
    Rows x, y;  // x ends in a one
    Index rows = 0;
  };
  struct Sums {
    Eigen::MatrixXd xx, xy;  // X'X (lower half), X'Y
    double weight = 0;       // pairs, the older ones counted less
  };

  Impl(std::size_t s, std::size_t f, const StaticMapOptions& o)
      : static_dim(s),
        full_dim(f),
        options(o),
        filling(s, f),
        adding(s, f),
        product_xx(index(s + 1), index(s + 1)),
        product_xy(index(s + 1), index(f)) {
    sums.xx = Eigen::MatrixXd::Zero(index(s + 1), index(s + 1));
    sums.xy = Eigen::MatrixXd::Zero(index(s + 1), index(f));
  }

  // Adds a block to the sums and empties it; sums_mutex is held.
  void add_up(Block& block) {
    const auto x = block.x.topRows(block.rows);
    product_xx.setZero();
    product_xx.selfadjointView<Eigen::Lower>().rankUpdate(x.transpose());
    product_xy.noalias() = x.transpose() * block.y.topRows(block.rows);
    if (sums.weight + static_cast<double>(block.rows) > static_cast<double>(options.memory)) {
      sums.xx *= 0.5, sums.xy *= 0.5, sums.weight *= 0.5;
    }
    sums.xx += product_xx.cast<double>();
    sums.xy += product_xy.cast<double>();
    sums.weight += static_cast<double>(block.rows);
    block.rows = 0;
  }

  const std::size_t static_dim, full_dim;
  const StaticMapOptions options;

  std::mutex fill_mutex;  // taken before sums_mutex where both are
  Block filling;          // guarded by fill_mutex
  std::size_t pairs = 0;  // guarded by fill_mutex

  std::mutex sums_mutex;
  Block adding;                            // guarded by sums_mutex, as what follows
  Eigen::MatrixXf product_xx, product_xy;  // scratch
  Sums sums;
};

StaticMapLearner::StaticMapLearner(std::size_t static_dim, std::size_t full_dim,
                                   const StaticMapOptions& options)
    : impl_(std::make_unique<Impl>(static_dim, full_dim, options)) {}

StaticMapLearner::~StaticMapLearner() = default;

void StaticMapLearner::add(std::span<const float> static_vector, std::span<const float> full_vector) {
  Impl& m = *impl_;
  WAYBILL_CHECK(static_vector.size() == m.static_dim && full_vector.size() == m.full_dim);
  std::unique_lock fill(m.fill_mutex);
  std::ranges::copy(static_vector, m.filling.x.row(m.filling.rows).data());
  std::ranges::copy(full_vector, m.filling.y.row(m.filling.rows).data());
  ++m.pairs;
  if (++m.filling.rows < kBlock) return;
  const std::lock_guard sums(m.sums_mutex);
  std::swap(m.filling, m.adding);
  fill.unlock();  // others go on while this one adds up
  m.add_up(m.adding);
}

std::size_t StaticMapLearner::pairs() const {
  const std::lock_guard fill(impl_->fill_mutex);
  return impl_->pairs;
}

std::optional<StaticMap> StaticMapLearner::snapshot() const {
  Impl& m = *impl_;
  Impl::Sums sums;
  StaticMap map;
  {
    const std::lock_guard fill(m.fill_mutex);
    if (m.pairs < std::max<std::size_t>(m.options.least_pairs, 1)) return std::nullopt;
    const std::lock_guard lock(m.sums_mutex);
    if (m.filling.rows != 0) m.add_up(m.filling);
    sums = m.sums;
    map.pairs_ = m.pairs;
  }
  map.static_dim_ = m.static_dim;
  map.full_dim_ = m.full_dim;
  sums.xx.diagonal().array() += m.options.ridge;
  const Eigen::MatrixXd solution =
      sums.xx.selfadjointView<Eigen::Lower>().llt().solve(sums.xy);  // [static + 1, full]
  const std::size_t inputs = m.static_dim + 1;
  map.weights_.assign((m.full_dim + kColumns - 1) / kColumns * inputs * kColumns, 0);
  for (std::size_t column = 0; column < m.full_dim; ++column) {
    float* block = &map.weights_[column / kColumns * inputs * kColumns];
    for (std::size_t i = 0; i < inputs; ++i) {
      block[i * kColumns + column % kColumns] = static_cast<float>(solution(index(i), index(column)));
    }
  }
  return map;
}

}  // namespace waybill::embed
