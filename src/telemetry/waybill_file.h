// Closed waybills as JSON lines in a file that rotates by size. docs/waybills.md is the format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "telemetry/waybill_book.h"

namespace waybill::telemetry {

struct WaybillFileOptions {
  std::filesystem::path path = {};       // empty: no file is written
  std::uint64_t max_bytes = 100U << 20;  // the file is rotated before it would grow past this
  unsigned keep = 5;                     // rotated files beside it: path.1 (the latest) ... path.N
  std::size_t queue = 8192;              // records that wait; beyond, they are dropped and counted
};

// Written by a thread of its own (named "waybill-file"). Thread-safe.
class WaybillFile final : public WaybillSink {
 public:
  // Appends to a file that is there. Fails with kIo.
  [[nodiscard]] static Result<std::unique_ptr<WaybillFile>> open(const WaybillFileOptions& options);
  ~WaybillFile() override;  // stop(), with a second to do it in

  void closed(const Record& record) noexcept override;

  // Lines that are not in the file: the queue was full, or the disk refused them.
  [[nodiscard]] std::uint64_t dropped() const noexcept;
  [[nodiscard]] std::string last_error() const;  // why the disk refused; empty: it has not
  // What is queued is written first, for at most `bound`; records told afterwards are dropped.
  void stop(Duration bound);

 private:
  struct Impl;
  explicit WaybillFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace waybill::telemetry
