// Another configuration put into force while requests run.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "config/config.h"
#include "route/engine.h"
#include "telemetry/telemetry.h"

namespace waybill::api {

class Gateway;

// A thread (named "reload") that checks a configuration whole and then swaps it in: when asked (SIGHUP, POST
// /v1/admin/reload), and when the file has changed. A bad file changes nothing and is told in the answer, in
// the log and in waybill_config_reloads_total{result="error"}. What cannot change without a restart (server,
// store, telemetry) is told too.
class Reloader {
 public:
  using Done = std::move_only_function<void(Result<std::string>)>;  // what has changed, as a sentence

  // The configuration as the server is to use it: read from the file, checked, command line options applied.
  using Load = std::function<Result<config::Config>()>;

  // All must outlive it. `file` is the one that is watched.
  Reloader(std::filesystem::path file, Load load, route::EngineOptions options, Gateway& gateway,
           telemetry::Telemetry& telemetry);
  ~Reloader() { stop(); }
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

  void start();
  // `done` is called on the reload thread; several requests that wait are answered by one reload.
  void request(Done done);
  // Answers what waits, and what is asked from then on, with kShuttingDown; waits for a reload that runs.
  void stop();

 private:
  // What tells one state of the file from another.
  struct FileState {
    std::filesystem::file_time_type changed{};
    std::uintmax_t size = 0;
    bool operator==(const FileState&) const = default;
  };

  void run();
  [[nodiscard]] FileState look() const;
  [[nodiscard]] Result<std::string> reload();

  const std::filesystem::path file_;
  const Load load_;
  const route::EngineOptions options_;
  Gateway& gateway_;
  telemetry::Telemetry& telemetry_;
  FileState loaded_,
      seen_;  // the reload thread's: of the configuration in force or refused; at the last look

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Done> waiting_;  // guarded by mutex_, as stopping_
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace waybill::api
