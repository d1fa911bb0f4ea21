// The program's log: JSON lines, or coloured text on a terminal.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/result.h"
#include "telemetry/record.h"
#include "telemetry/waybill_book.h"

namespace waybill::telemetry {

enum class Level : std::uint8_t { kTrace, kDebug, kInfo, kWarn, kError, kOff };
[[nodiscard]] std::string_view to_string(Level level) noexcept;  // "trace", "debug", ..., "off"

enum class LogFormat : std::uint8_t { kAuto, kJson, kText };  // auto: text on a terminal, else JSON

struct LogOptions {
  Level level = Level::kInfo;
  LogFormat format = LogFormat::kAuto;
  std::filesystem::path file = {};  // empty: stderr
  double healthy_per_second = 10;   // lines for requests that completed; 0: none. Others always have one
  std::size_t queue = 8192;         // entries that wait to be written; beyond, they are dropped and counted
};

// A named value of an event. Names are snake_case; "time", "level", "message" are taken.
struct Field {
  std::string_view name;
  std::variant<std::string_view, std::int64_t, double, bool> value;

  Field(std::string_view n, std::string_view v) : name(n), value(v) {}
  Field(std::string_view n, const char* v) : name(n), value(std::string_view(v)) {}
  Field(std::string_view n, const std::string& v) : name(n), value(std::string_view(v)) {}
  Field(std::string_view n, double v) : name(n), value(v) {}
  Field(std::string_view n, bool v) : name(n), value(v) {}
  template <std::integral Integer>
    requires(!std::same_as<Integer, bool>)
  Field(std::string_view n, Integer v) : name(n), value(static_cast<std::int64_t>(v)) {}
};

// Never blocks its caller: entries go through a bounded queue to a thread (named "log") that formats and
// writes them. Thread-safe.
class Log final : public WaybillSink {
 public:
  // Fails with kIo when the file cannot be opened.
  [[nodiscard]] static Result<std::unique_ptr<Log>> make(const LogOptions& options);
  ~Log() override;  // stop(), with a second to do it in

  void trace(std::string_view message, std::initializer_list<Field> fields = {}) {
    write(Level::kTrace, message, fields);
  }
  void debug(std::string_view message, std::initializer_list<Field> fields = {}) {
    write(Level::kDebug, message, fields);
  }
  void info(std::string_view message, std::initializer_list<Field> fields = {}) {
    write(Level::kInfo, message, fields);
  }
  void warn(std::string_view message, std::initializer_list<Field> fields = {}) {
    write(Level::kWarn, message, fields);
  }
  void error(std::string_view message, std::initializer_list<Field> fields = {}) {
    write(Level::kError, message, fields);
  }
  void write(Level level, std::string_view message, std::initializer_list<Field> fields = {}) noexcept;

  // One line for the request: always when it did not complete, else by the rate.
  void closed(const Record& record) noexcept override;

  [[nodiscard]] std::uint64_t dropped() const noexcept;
  // What is queued is written first, for at most `bound`; entries told afterwards are dropped.
  void stop(Duration bound);

 private:
  struct Impl;
  explicit Log(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::telemetry
