// Waybill in your own process: which route, and so which model, a prompt should go to.
//
//   auto router = waybill::Router::load("waybill.yaml");
//   if (!router) { std::cerr << router.error().message << '\n'; return 1; }
//   auto decision = router->route("what is the refund policy?");
//   if (decision) std::cout << decision->route << " -> " << decision->model << '\n';
//
// C++23. Link waybill::waybill (find_package(waybill)). No function throws; every failure is a waybill::Error
// with a sentence for people and a code for programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <waybill/error.h>

namespace waybill {

// What decided, cheapest first.
enum class DecidedBy : std::uint8_t { kRule, kCache, kStatic, kEncoder, kDefault };

struct Decision {
  std::string route;
  std::string model;
  double score = 0;  // calibrated probability, 0 to 1, that the best route is right; 1 for a rule
  DecidedBy tier = DecidedBy::kEncoder;
  bool degraded = false;  // decided by a cheaper tier than the configuration would have liked
  std::string reason;     // "score", "below threshold", "margin", "cache", "rule", "vetoed", ...
};

struct RouteInfo {
  std::string name, model, description;
  double threshold = 0;  // a best route whose score is below it gives way to the default route
  std::size_t utterances = 0;
};

struct RouterOptions {
  std::filesystem::path model_folder;  // instead of the configuration's encoder; empty: the configuration's
  std::string precision;               // "f32", "bf16", "int16", "int8"; empty: the configuration's
  unsigned threads = 0;                // for loading and for batches; 0: one per core
};

// A configuration, its encoder and its routes, loaded. Movable; all const functions may be called from any
// number of threads at once. To reload, load another one and let the old one go when its last call has
// returned.
class Router {
 public:
  // Reads the configuration (docs/config.md), maps the encoder, and embeds and fits what is not in the cache:
  // well under a second from the second start on.
  [[nodiscard]] static std::expected<Router, Error> load(const std::filesystem::path& config_file,
                                                         const RouterOptions& options = {});

  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router();

  // Decides on the calling thread. The prompt is UTF-8; what is not reads as U+FFFD. Any length, also none.
  [[nodiscard]] std::expected<Decision, Error> route(std::string_view prompt) const;

  // The same decisions in the same order, with the encoder's work packed into batches on several threads.
  [[nodiscard]] std::expected<std::vector<Decision>, Error> route_batch(
      std::span<const std::string> prompts) const;

  // The sentence embedding: dim() numbers, of length 1 where the model normalises.
  [[nodiscard]] std::expected<std::vector<float>, Error> embed(std::string_view text) const;

  // texts.size() * dim() numbers, one text after the other.
  [[nodiscard]] std::expected<std::vector<float>, Error> embed_batch(
      std::span<const std::string> texts) const;

  [[nodiscard]] std::size_t dim() const noexcept;
  [[nodiscard]] std::span<const RouteInfo> routes() const noexcept;

 private:
  struct State;
  explicit Router(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace waybill
