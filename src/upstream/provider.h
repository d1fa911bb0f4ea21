// One provider in use: how it is called, and what it may be asked for.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/upstream_config.h"
#include "http/client_connection.h"
#include "upstream/dialect.h"
#include "upstream/lane_queue.h"

namespace waybill::upstream {

// Shared: by its targets, in the catalogs of all configurations that have it unchanged. Thread-safe.
class Provider {
 public:
  // Reads its keys and certificates. Fails with a sentence that names the setting.
  [[nodiscard]] static Result<std::shared_ptr<Provider>> make(const config::Provider& config);

  [[nodiscard]] const config::Provider& config() const noexcept { return config_; }
  [[nodiscard]] const Dialect& dialect() const noexcept { return *dialect_; }
  [[nodiscard]] const std::shared_ptr<const http::Origin>& origin() const noexcept { return origin_; }
  // How to address a call for `model`, with the next of its keys. Valid as long as the provider.
  [[nodiscard]] TargetAddress address(std::string_view model) const noexcept;
  // As a request line has them: a path below base_url, and one from the root of the host.
  [[nodiscard]] std::string path_of(std::string_view path) const { return prefix_ + std::string(path); }
  [[nodiscard]] std::string root_path(std::string_view path) const {
    return origin_->target_prefix() + std::string(path);
  }
  [[nodiscard]] LaneQueue& lanes() noexcept { return lanes_; }

 private:
  explicit Provider(const config::Provider& config);

  const config::Provider config_;
  std::unique_ptr<const Dialect> dialect_;
  std::shared_ptr<const http::Origin> origin_;
  std::string host_, prefix_, headers_;
  std::vector<std::string> keys_;
  mutable std::atomic<std::size_t> next_key_{0};
  LaneQueue lanes_;
};

}  // namespace waybill::upstream
