// What one configuration can call: models by name, their targets, the providers behind them.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "config/price_table.h"
#include "upstream/balancer.h"
#include "upstream/provider.h"
#include "upstream/target.h"
#include "upstream/terms.h"

namespace waybill::upstream {

struct Model {
  std::string name;
  std::vector<PoolMember> pool;
  std::vector<const Model*> fallback;
  config::Model config;
};

// Immutable but for what providers and targets measure of themselves. Thread-safe.
class Catalog {
 public:
  // Providers that are the same in `previous` are taken over with all that they have measured; so are
  // targets. Reads keys and certificates. Fails with a sentence that names the setting.
  [[nodiscard]] static Result<std::shared_ptr<const Catalog>> make(const config::Config& config,
                                                                   const Catalog* previous);

  struct Found {
    const Model* model = nullptr;  // null: there is none of that name
    std::string_view asked;  // what its targets are asked for: of "provider/model" the part after the "/"
  };
  // A model, or "provider/model".
  [[nodiscard]] Found find(std::string_view name) const;

  [[nodiscard]] const std::vector<std::unique_ptr<Model>>& models() const noexcept { return models_; }
  [[nodiscard]] const std::vector<std::shared_ptr<Provider>>& providers() const noexcept {
    return providers_;
  }
  // All targets: of models, and for each provider the one that stands for whatever is asked for by its own
  // name.
  [[nodiscard]] const std::map<std::string, std::shared_ptr<Target>, std::less<>>& targets() const noexcept {
    return targets_;
  }
  [[nodiscard]] const config::Gateway& gateway() const noexcept { return gateway_; }
  [[nodiscard]] bool empty() const noexcept { return models_.empty() && providers_.empty(); }

  // In 1e-9 US dollars; 0 where there is no price.
  [[nodiscard]] std::uint64_t cost_nano_usd(const Target& target, std::string_view model,
                                            const Usage& usage) const;

 private:
  explicit Catalog(const config::Config& config) : gateway_(config.gateway), prices_(config.prices) {}
  Status add_providers(const config::Config& config, const Catalog* previous);
  void add_models(const config::Config& config, const Catalog* previous);
  std::shared_ptr<Target> target(const std::shared_ptr<Provider>& provider, const std::string& model,
                                 const Catalog* previous);

  std::vector<std::shared_ptr<Provider>> providers_;
  std::map<std::string, std::shared_ptr<Target>, std::less<>> targets_;  // by "provider/model"
  std::vector<std::unique_ptr<Model>> models_;
  std::map<std::string, const Model*, std::less<>> by_name_;
  std::map<std::string, std::unique_ptr<Model>, std::less<>> by_provider_;  // for "provider/model"
  const config::Gateway gateway_;
  const config::PriceTable prices_;
};

}  // namespace waybill::upstream
