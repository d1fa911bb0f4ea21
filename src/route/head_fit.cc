// How a head is fitted: checks, features, the two regressions, calibration, thresholds.
#include <algorithm>
#include <cmath>
#include <optional>

#include <Eigen/Core>
#include <fmt/format.h>

#include "route/calibrate.h"
#include "route/head.h"
#include "route/kernel_features.h"
#include "route/linear_algebra.h"
#include "route/ridge.h"
#include "route/softmax_regression.h"

namespace waybill::route {
namespace {

using Eigen::Index;
using Eigen::MatrixXf;

constexpr float kRidgeLambda = 0.2F;
constexpr float kRidgeShare = 5;      // of the ridge scores in the sum
constexpr float kRidgeStart = 10;     // ridge scores times this are where the logistic regression sets out
constexpr float kMostImbalance = 16;  // classes count alike up to this factor from the mean size
// Of two utterances, one left out says how good one is, which is much worse than two: it would teach modesty.
constexpr float kLeastToLeaveOut = 3;
constexpr float kLargestWeight = 4096;     // among halves, which go from 6e-8 to 65,504
constexpr std::size_t kOwnThreshold = 10;  // utterances from which a route's own quantile counts
constexpr float kShrinkage =
    20;  // utterances' worth of weight that the global threshold keeps in a route's own

Status check(const LabelledEmbeddings& data, const HeadOptions& options) {
  const auto invalid = [](std::string sentence) {
    return fail(ErrorCode::kInvalidInput, std::move(sentence));
  };
  if (data.dim == 0) return invalid("a head needs embeddings with at least one dimension");
  if (data.routes == 0 || data.labels.empty())
    return invalid("a head needs at least one route with an utterance; add utterances");
  if (data.embeddings.size() != data.labels.size() * data.dim) {
    return invalid(fmt::format("{} labels of {} dimensions need {} numbers, {} were given",
                               data.labels.size(), data.dim, data.labels.size() * data.dim,
                               data.embeddings.size()));
  }
  if (data.out_of_scope.size() % data.dim != 0)
    return invalid("the out-of-scope embeddings have another number of dimensions");
  if (!options.thresholds.empty() && options.thresholds.size() != data.routes) {
    return invalid(
        fmt::format("{} thresholds were given for {} routes", options.thresholds.size(), data.routes));
  }
  if (!(options.reject_quantile >= 0 && options.reject_quantile < 1))
    return invalid("reject_quantile must be from 0 to below 1");
  if (options.scoring == config::Scoring::kAurelio && options.top_k == 0)
    return invalid("top_k must be at least 1");
  for (const std::uint32_t label : data.labels) {
    if (label >= data.routes)
      return invalid(fmt::format("label {} is not below the number of routes, {}", label, data.routes));
  }
  const auto finite = [](float x) { return std::isfinite(x); };
  if (!std::all_of(data.embeddings.begin(), data.embeddings.end(), finite) ||
      !std::all_of(data.out_of_scope.begin(), data.out_of_scope.end(), finite)) {
    return invalid("an embedding contains a number that is not finite");
  }
  return {};
}

}  // namespace

class HeadFitter {
 public:
  HeadFitter(const LabelledEmbeddings& data, const HeadOptions& options) : data_(data), options_(options) {
    head_.scoring_ = options.scoring;
    head_.aggregation_ = options.aggregation;
    head_.dim_ = data.dim;
    head_.top_k_ = options.top_k;
    head_.thresholds_.resize(data.routes);
  }

  Result<Head> run() {
    if (options_.scoring == config::Scoring::kAurelio) {
      keep_neighbours();
    } else if (Status status = fit_kernel(); !status) {
      return std::unexpected(status.error());
    }
    set_thresholds();
    summarise();
    report(options_.progress, kStep, 100, 100);
    return std::move(head_);
  }

 private:
  static constexpr std::string_view kStep = "fitting the head";

  void keep_neighbours() {
    head_.points_.assign(data_.embeddings.begin(), data_.embeddings.end());
    head_.labels_.assign(data_.labels.begin(), data_.labels.end());
    Head::Scratch scratch;
    std::vector<float> scores(data_.routes);
    for (std::size_t i = 0; i < data_.labels.size(); ++i) {
      head_.leave_one_out_.push_back(
          head_.score_neighbours(data_.embeddings.subspan(i * data_.dim, data_.dim), scores, scratch, i));
    }
    count_routes();
  }

  void count_routes() {
    sizes_.assign(data_.routes, 0);
    for (const std::uint32_t label : data_.labels) ++sizes_[label];
  }

  // Columns: routes that have utterances, then one for the out-of-scope examples if there are any.
  void lay_out_columns() {
    count_routes();
    std::vector<std::uint32_t> column_of(data_.routes);
    for (std::uint32_t r = 0; r < data_.routes; ++r) {
      if (sizes_[r] == 0) continue;
      column_of[r] = static_cast<std::uint32_t>(head_.column_routes_.size());
      head_.column_routes_.push_back(r);
    }
    const std::size_t outside = data_.out_of_scope.size() / data_.dim;
    head_.columns_ = head_.column_routes_.size() + (outside > 0 ? 1 : 0);
    for (const std::uint32_t label : data_.labels) columns_.push_back(column_of[label]);
    columns_.insert(columns_.end(), outside, static_cast<std::uint32_t>(head_.column_routes_.size()));

    const auto dim = static_cast<Index>(data_.dim), inside = static_cast<Index>(data_.labels.size());
    x_.resize(dim, inside + static_cast<Index>(outside));
    x_.leftCols(inside) = Eigen::Map<const MatrixXf>(data_.embeddings.data(), dim, inside);
    if (outside > 0)
      x_.rightCols(static_cast<Index>(outside)) =
          Eigen::Map<const MatrixXf>(data_.out_of_scope.data(), dim, static_cast<Index>(outside));

    const ByteRows rounded = ByteRows::of({x_.data(), static_cast<std::size_t>(x_.size())}, data_.dim);
    for (std::size_t i = 0; i < rounded.rows(); ++i)
      rounded.decode(i, {x_.col(static_cast<Index>(i)).data(), data_.dim});

    Eigen::VectorXf counts = Eigen::VectorXf::Zero(static_cast<Index>(head_.columns_));
    for (const std::uint32_t c : columns_) counts[c] += 1;
    const float mean = counts.mean();
    offsets_ = (counts / mean).array().log();
    weights_.resize(x_.cols());
    for (Index i = 0; i < x_.cols(); ++i) {
      const float size = counts[columns_[static_cast<std::size_t>(i)]];
      weights_[i] = std::clamp(mean / size, 1 / kMostImbalance, kMostImbalance);
      usable_.push_back(size >= kLeastToLeaveOut && head_.columns_ > 1);
    }
  }

  bool stopped(std::size_t percent) {
    report(options_.progress, kStep, percent, 100);
    return options_.stop.stop_requested();
  }

  // The two regressions on what stands for the kernel, and how well they would do without each example.
  struct Regression {
    MatrixXf weights, left_out;  // [columns, features or examples]; [columns, examples]
  };

  Status fit_kernel() {
    lay_out_columns();
    if (stopped(0)) return cancelled();
    std::optional<Regression> fit = columns_.size() <= options_.exact ? fit_exactly() : fit_on_landmarks();
    if (!fit) return cancelled();
    favoured_.resize(columns_.size());
    for (std::size_t i = 0; i < columns_.size(); ++i) usable_[i] = usable_[i] && !favoured_[i];
    head_.calibration_ =
        calibrate(fit->left_out, head_.column_routes_.size(), columns_, usable_, favoured_, weights_);
    std::vector<float> probabilities(data_.routes);
    for (Index i = 0; i < static_cast<Index>(data_.labels.size()); ++i) {
      head_.leave_one_out_.push_back(
          head_.decide({fit->left_out.col(i).data(), head_.columns_}, probabilities));
    }
    return {};
  }

  // All examples are landmarks, nothing is lost, and everything is done on the kernel matrix itself.
  std::optional<Regression> fit_exactly() {
    const MatrixXf kernel = kernel_between(x_, x_, options_.threads);
    if (stopped(10)) return std::nullopt;
    const RidgeFit ridge = fit_kernel_ridge(kernel, targets(), weights_, kRidgeLambda, options_.threads);
    if (stopped(30)) return std::nullopt;
    Regression fit = {.weights = kRidgeShare * ridge.weights, .left_out = kRidgeShare * ridge.leave_one_out};
    if (!alone()) {
      const SoftmaxFit softmax =
          fit_kernel_softmax(kernel, columns_, offsets_, ridge, kRidgeStart, softmax_options());
      const auto among = [&](std::span<const Index> chosen) -> MatrixXf {
        return kernel(std::vector<Index>(chosen.begin(), chosen.end()),
                      std::vector<Index>(chosen.begin(), chosen.end()));
      };
      if (!add(fit, softmax, among)) return std::nullopt;
    }
    store(x_, fit.weights);
    return fit;
  }

  std::optional<Regression> fit_on_landmarks() {
    const KernelFeatures map(x_, columns_, std::min(options_.landmarks, columns_.size()));
    const MatrixXf features = map.of(x_, options_.threads);
    if (stopped(10)) return std::nullopt;
    const MatrixXf gram = gram_of_rows(features, options_.threads);
    if (stopped(20)) return std::nullopt;
    const bool all_alike = (weights_.array() == 1.0F).all();
    const RidgeFit ridge = fit_ridge(features, all_alike ? gram : MatrixXf(), targets(), weights_,
                                     kRidgeLambda, options_.threads);
    if (stopped(30)) return std::nullopt;
    Regression fit = {.weights = kRidgeShare * ridge.weights, .left_out = kRidgeShare * ridge.leave_one_out};
    if (!alone()) {
      const SoftmaxFit softmax =
          fit_softmax(features, gram, columns_, offsets_, ridge, kRidgeStart, softmax_options());
      const auto among = [&](std::span<const Index> chosen) -> MatrixXf {
        const MatrixXf some = features(Eigen::all, std::vector<Index>(chosen.begin(), chosen.end()));
        return some.transpose() * some;
      };
      if (!add(fit, softmax, among)) return std::nullopt;
    }
    favoured_ = map.favoured();
    head_.linear_ = true;
    store(map.landmarks(), map.expand(fit.weights));
    return fit;
  }

  // One class has nothing to be told from: the regression on 1 is then a smooth density, 0 far from all
  // utterances.
  [[nodiscard]] bool alone() const { return head_.columns_ == 1; }

  [[nodiscard]] MatrixXf targets() const {
    MatrixXf out = MatrixXf::Constant(static_cast<Index>(head_.columns_), x_.cols(),
                                      alone() ? 0 : -1 / static_cast<float>(head_.columns_));
    for (Index i = 0; i < x_.cols(); ++i) out(columns_[static_cast<std::size_t>(i)], i) += 1;
    return out;
  }

  [[nodiscard]] SoftmaxOptions softmax_options() {
    SoftmaxOptions softmax{.threads = options_.threads, .keep_going = {}};
    softmax.keep_going = [this, steps = softmax.iterations](int step) {
      return !stopped(30 + static_cast<std::size_t>(60 * step / steps));
    };
    return softmax;
  }

  // False when asked to stop.
  bool add(Regression& fit, const SoftmaxFit& softmax, const KernelAmong& among) {
    if (stopped(90)) return false;
    fit.weights += softmax.weights;
    fit.left_out += softmax_leave_one_out(among, softmax, columns_, offsets_, softmax_options());
    return true;
  }

  static std::unexpected<Error> cancelled() {
    return fail(ErrorCode::kCancelled, "the fit of the head was stopped");
  }

  // landmarks [dim, M]; weights [columns, M (+ dim)].
  void store(const MatrixXf& landmarks, const MatrixXf& weights) {
    head_.landmarks_ =
        ByteRows::of({landmarks.data(), static_cast<std::size_t>(landmarks.size())}, data_.dim);
    head_.weight_scale_ = std::max(weights.cwiseAbs().maxCoeff(), 1e-20F) / kLargestWeight;
    const MatrixXf scaled = weights / head_.weight_scale_;
    const std::size_t width = (head_.columns_ + kHalfColumns - 1) / kHalfColumns * kHalfColumns;
    head_.weights_.assign(static_cast<std::size_t>(weights.cols()) * width, 0);
    for (Index i = 0; i < weights.cols(); ++i) {
      to_halves({scaled.col(i).data(), head_.columns_},
                std::span(head_.weights_).subspan(static_cast<std::size_t>(i) * width, head_.columns_));
    }
  }

  // The quantile of what the utterances get when left out: over all, and per route where it has enough of
  // them, drawn towards the one over all by what so few values cannot know.
  void set_thresholds() {
    std::vector<float> all;
    std::vector<std::vector<float>> own(data_.routes);
    for (std::size_t i = 0; i < data_.labels.size(); ++i) {
      const HeadDecision& d = head_.leave_one_out_[i];
      if (favoured(i)) continue;
      all.push_back(d.probability);
      own[data_.labels[i]].push_back(d.probability);
    }
    const float global = quantile(std::move(all), options_.reject_quantile);
    for (std::size_t r = 0; r < data_.routes; ++r) {
      float& threshold = head_.thresholds_[r];
      threshold = global;
      const auto n = static_cast<float>(own[r].size());
      if (own[r].size() >= kOwnThreshold) {
        threshold = (n * quantile(std::move(own[r]), options_.reject_quantile) + kShrinkage * global) /
                    (n + kShrinkage);
      }
      if (!options_.thresholds.empty() && options_.thresholds[r]) threshold = *options_.thresholds[r];
    }
    for (HeadDecision& d : head_.leave_one_out_) d.accepted = d.probability >= head_.thresholds_[d.best];
  }

  void summarise() {
    HeadStatistics& s = head_.statistics_;
    s.reliability.resize(10);
    s.routes.resize(data_.routes);
    std::vector<std::vector<float>> own(data_.routes);
    double counted = 0;
    for (std::size_t i = 0; i < data_.labels.size(); ++i) {
      const HeadDecision& d = head_.leave_one_out_[i];
      const std::uint32_t label = data_.labels[i];
      const double right = d.best == label ? 1 : 0;
      own[label].push_back(d.probability);
      s.routes[label].accuracy += right;
      if (sizes_[label] < 2 || favoured(i)) continue;
      counted += 1;
      s.accuracy += right;
      ReliabilityBin& bin =
          s.reliability[static_cast<std::size_t>(std::clamp(d.probability * 10.0F, 0.0F, 9.0F))];
      ++bin.count;
      bin.accuracy += right;
      bin.mean_probability += static_cast<double>(d.probability);
    }
    s.accuracy /= std::max(counted, 1.0);
    for (ReliabilityBin& bin : s.reliability) {
      s.calibration_error += std::abs(bin.accuracy - bin.mean_probability) / std::max(counted, 1.0);
      bin.accuracy /= std::max(static_cast<double>(bin.count), 1.0);
      bin.mean_probability /= std::max(static_cast<double>(bin.count), 1.0);
    }
    for (std::size_t r = 0; r < data_.routes; ++r) {
      s.routes[r].utterances = sizes_[r];
      s.routes[r].accuracy /= std::max(static_cast<double>(sizes_[r]), 1.0);
      s.routes[r].low = quantile(own[r], 0.05);
      s.routes[r].quartile = quantile(own[r], 0.25);
      s.routes[r].median = quantile(own[r], 0.5);
      s.routes[r].upper_quartile = quantile(std::move(own[r]), 0.75);
    }
  }

  [[nodiscard]] bool favoured(std::size_t i) const { return !favoured_.empty() && favoured_[i]; }

  const LabelledEmbeddings& data_;
  const HeadOptions& options_;
  Head head_;
  MatrixXf x_;                           // [dim, n + m], rounded to bytes as the landmarks of the head are
  std::vector<std::uint32_t> columns_;   // the column of each example
  std::vector<std::size_t> sizes_;       // utterances of each route
  std::vector<bool> usable_, favoured_;  // kernel_features.h says who is favoured
  Eigen::VectorXf offsets_, weights_;
};

Result<Head> Head::fit(const LabelledEmbeddings& data, const HeadOptions& options) {
  if (Status status = check(data, options); !status) return std::unexpected(status.error());
  return HeadFitter(data, options).run();
}

}  // namespace waybill::route
