// From the static vector of a text towards what the encoder would have said: a linear map learnt from one's
// own traffic. Every full pass of the encoder yields a pair to learn from, for nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace waybill::embed {

// out = (W x + b), of length 1. Immutable and thread-safe.
class StaticMap {
 public:
  [[nodiscard]] std::size_t static_dim() const noexcept { return static_dim_; }
  [[nodiscard]] std::size_t full_dim() const noexcept { return full_dim_; }
  [[nodiscard]] std::size_t pairs() const noexcept { return pairs_; }  // learnt from

  // x.size() == static_dim(), out.size() == full_dim(). No allocation.
  void apply(std::span<const float> x, std::span<float> out) const noexcept;

 private:
  friend class StaticMapLearner;
  StaticMap() = default;

  std::size_t static_dim_ = 0, full_dim_ = 0, pairs_ = 0;
  std::vector<float> weights_;  // [full_dim / 64, rounded up][static_dim + 1][64]; the last of a block is b
};

struct StaticMapOptions {
  // The best of 0.03 to 10 on CLINC150 and Banking77, learnt from 500 to 15,000 pairs.
  double ridge = 0.3;
  std::size_t memory =
      100'000;  // pairs; when as many have come, all of them count half, so that it follows the traffic
  std::size_t least_pairs = 500;  // before that there is no map
};

// Sums up pairs of vectors (both of length 1) and solves the ridge regression in closed form:
// W = Y'X (X'X + ridge I)^-1, with a one appended to each x for b. Thread-safe; holds 1.5 MB for 256 -> 384.
class StaticMapLearner {
 public:
  StaticMapLearner(std::size_t static_dim, std::size_t full_dim, const StaticMapOptions& options = {});
  ~StaticMapLearner();
  StaticMapLearner(const StaticMapLearner&) = delete;
  StaticMapLearner& operator=(const StaticMapLearner&) = delete;

  // Costs a copy; every 64th call also adds the block up (under a millisecond). No allocation.
  void add(std::span<const float> static_vector, std::span<const float> full_vector);

  [[nodiscard]] std::size_t pairs() const;

  // The map of all pairs so far (some 20 ms); empty while there are too few. add() may go on meanwhile.
  [[nodiscard]] std::optional<StaticMap> snapshot() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::embed
