// Says in the log that the store cannot be written, and that it can again: once each.
#pragma once

#include <atomic>
#include <filesystem>
#include <utility>

#include "base/result.h"
#include "telemetry/log.h"

namespace waybill::jobs {

// Thread-safe. The log outlives it.
class StoreWatch {
 public:
  StoreWatch(telemetry::Log& log, std::filesystem::path path) : log_(log), path_(std::move(path)) {}

  // What a change was answered with. Anything but kStoreUnavailable is not about the store.
  void failed(const Error& error);
  // Now and then.
  void look(bool is_writable);

 private:
  void say(const std::string& why);

  telemetry::Log& log_;
  const std::filesystem::path path_;
  std::atomic<bool> told_{false};     // that it cannot be written
  std::atomic<bool> doubted_{false};  // by the last look, when nobody had said why
};

}  // namespace waybill::jobs
