// Another configuration put into force while requests run.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "route/engine.h"
#include "telemetry/telemetry.h"

namespace waybill::api {

class Gateway;

// A thread (named "reload") that checks a configuration whole and then swaps it in: when asked (SIGHUP, POST
// /v1/admin/reload), and when the file has changed. A bad file changes nothing and is told in the answer, in
// the log and in waybill_config_reloads_total{result="error"}. What cannot change without a restart (server,
// telemetry) is told too.
class Reloader {
 public:
  using Done = std::move_only_function<void(Result<std::string>)>;  // what has changed, as a sentence

  // All must outlive it.
  Reloader(std::filesystem::path file, route::EngineOptions options, Gateway& gateway,
           telemetry::Telemetry& telemetry);
  ~Reloader();  // answers what waits with kShuttingDown
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

  void start();
  // `done` is called on the reload thread; several requests that wait are answered by one reload.
  void request(Done done);

 private:
  void run();
  [[nodiscard]] Result<std::string> reload();

  const std::filesystem::path file_;
  const route::EngineOptions options_;
  Gateway& gateway_;
  telemetry::Telemetry& telemetry_;
  std::filesystem::file_time_type changed_;

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Done> waiting_;  // guarded by mutex_, as stopping_
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace waybill::api
