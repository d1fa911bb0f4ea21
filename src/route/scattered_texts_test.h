// Embeddings to fit on without a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <Eigen/Core>

#include "route/head.h"

namespace waybill::route {

inline constexpr std::size_t kDim = 24;

// Unit vectors scattered around one centre per route; the seeds make every run the same.
class Texts {
 public:
  explicit Texts(std::size_t routes, float spread = 0.8F, std::uint64_t seed = 1)
      : random_(seed), spread_(spread) {
    for (std::size_t r = 0; r < routes; ++r) centres_.push_back(direction());
  }

  Texts& add(std::size_t route, std::size_t count = 1) {
    for (; count > 0; --count) push(near(centres_[route]), route);
    return *this;
  }
  Texts& add_each(std::size_t count) {
    for (std::size_t r = 0; r < centres_.size(); ++r) add(r, count);
    return *this;
  }
  void push(const Eigen::VectorXf& embedding, std::size_t route) {
    embeddings.insert(embeddings.end(), embedding.begin(), embedding.end());
    labels.push_back(static_cast<std::uint32_t>(route));
  }

  [[nodiscard]] Eigen::VectorXf like(std::size_t route) { return near(centres_[route]); }
  [[nodiscard]] Eigen::VectorXf direction() {
    std::normal_distribution<float> normal;
    return Eigen::VectorXf::NullaryExpr(kDim, [&] { return normal(random_); }).normalized();
  }
  [[nodiscard]] LabelledEmbeddings data() const {
    return {.embeddings = embeddings,
            .labels = labels,
            .dim = kDim,
            .routes = centres_.size(),
            .out_of_scope = out_of_scope};
  }
  [[nodiscard]] Eigen::MatrixXf matrix() const {
    return Eigen::Map<const Eigen::MatrixXf>(embeddings.data(), kDim,
                                             static_cast<Eigen::Index>(labels.size()));
  }

  std::vector<float> embeddings, out_of_scope;
  std::vector<std::uint32_t> labels;

 private:
  Eigen::VectorXf near(const Eigen::VectorXf& centre) {
    return (centre + spread_ * direction()).normalized();
  }

  std::mt19937_64 random_;
  float spread_;
  std::vector<Eigen::VectorXf> centres_;
};

}  // namespace waybill::route
