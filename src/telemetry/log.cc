#include "telemetry/log.h"

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ansicolor_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include "telemetry/background_queue.h"
#include "telemetry/line_budget.h"
#include "telemetry/log_line.h"
#include "telemetry/record_json.h"

namespace waybill::telemetry {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  constexpr std::array kLevels = {spdlog::level::trace, spdlog::level::debug, spdlog::level::info,
                                  spdlog::level::warn,  spdlog::level::err,   spdlog::level::off};
  return kLevels[static_cast<std::size_t>(level)];
}

spdlog::sink_ptr make_sink(const LogOptions& options, bool text) {
  if (!options.file.empty())
    return std::make_shared<spdlog::sinks::basic_file_sink_st>(options.file.string());
  if (text) return std::make_shared<spdlog::sinks::ansicolor_stderr_sink_st>();  // colours on a terminal only
  return std::make_shared<spdlog::sinks::stderr_sink_st>();
}

class Writer final : public QueueConsumer<LogEntry> {
 public:
  Writer(const LogOptions& options, bool text) : text_(text), logger_("waybill", make_sink(options, text)) {
    logger_.set_level(spdlog::level::trace);  // the level was looked at before the queue
    logger_.set_pattern(text ? "%H:%M:%S.%e %^%-5l%$ %v" : "%v");
    logger_.set_error_handler([](const std::string&) {});  // there is no better place to tell it
  }

  void consume(std::deque<LogEntry>& batch, StopSignal& /*stop*/) noexcept override {
    for (const LogEntry& entry : batch) {
      line_.clear();
      if (text_) {
        append_text(line_, entry);
      } else {
        append_json(line_, entry);
      }
      const spdlog::log_clock::time_point time{std::chrono::microseconds(entry.time_us)};
      logger_.log(time, spdlog::source_loc{}, to_spdlog(entry.level), line_);
    }
    logger_.flush();
  }

 private:
  const bool text_;
  spdlog::logger logger_;
  std::string line_;
};

std::int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Level level_of(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kCompleted:
      return Level::kInfo;
    case Outcome::kFailed:
      return Level::kError;
    case Outcome::kRejected:
    case Outcome::kCancelled:
    case Outcome::kExpired:
      break;
  }
  return Level::kWarn;
}

}  // namespace

std::string_view to_string(Level level) noexcept {
  constexpr std::array<std::string_view, 6> kNames = {"trace", "debug", "info", "warn", "error", "off"};
  return kNames[static_cast<std::size_t>(level)];
}

struct Log::Impl {
  Impl(const LogOptions& options, bool as_text)
      : level(options.level),
        text(as_text),
        healthy(options.healthy_per_second),
        queue({.thread_name = "log",
               .capacity = options.queue,
               .batch = 256,
               .linger = std::chrono::milliseconds(5)},
              std::make_unique<Writer>(options, as_text)) {}

  const Level level;
  const bool text;
  LineBudget healthy;
  BackgroundQueue<LogEntry> queue;
};

Log::Log(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Log::~Log() = default;

Result<std::unique_ptr<Log>> Log::make(const LogOptions& options) {
  const bool terminal = options.file.empty() && ::isatty(STDERR_FILENO) == 1;
  const bool text = options.format == LogFormat::kText || (options.format == LogFormat::kAuto && terminal);
  try {
    return std::unique_ptr<Log>(new Log(std::make_unique<Impl>(options, text)));
  } catch (const spdlog::spdlog_ex& e) {
    return waybill::fail(ErrorCode::kIo, fmt::format("cannot write the log: {}", e.what()),
                         "telemetry.log.file");
  }
}

void Log::write(Level level, std::string_view message, std::initializer_list<Field> fields) noexcept {
  if (level < impl_->level || impl_->level == Level::kOff) return;
  LogEntry entry{.level = level, .time_us = now_us(), .what = std::string()};
  append_event(std::get<std::string>(entry.what), message, fields, impl_->text);
  impl_->queue.push(std::move(entry));
}

void Log::closed(const Record& record) noexcept {
  const Level level = level_of(record.outcome);
  if (level < impl_->level || impl_->level == Level::kOff) return;
  const std::int64_t time_us = record.started_us + static_cast<std::int64_t>(record.duration_us);
  RequestLine line{record, 0};
  if (record.outcome == Outcome::kCompleted) {
    const std::optional<std::uint64_t> left_out = impl_->healthy.take(time_us);
    if (!left_out) return;
    line.left_out = *left_out;
  }
  impl_->queue.push({.level = level, .time_us = time_us, .what = line});
}

std::uint64_t Log::dropped() const noexcept { return impl_->queue.dropped(); }
void Log::stop(Duration bound) { impl_->queue.stop(bound); }

}  // namespace waybill::telemetry
