#include "telemetry/waybill_file.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "telemetry/background_queue.h"
#include "telemetry/record_json.h"

namespace waybill::telemetry {
namespace {

// Told by the writing thread, read by anybody; both share it, since the thread may be left behind.
struct Trouble {
  std::atomic<std::uint64_t> lines{0};
  std::mutex mutex;
  std::string text;  // guarded by mutex
};

// The file that is being appended to.
class RotatingFile {
 public:
  explicit RotatingFile(const WaybillFileOptions& options) : options_(options) {}
  ~RotatingFile() { close(); }
  RotatingFile(const RotatingFile&) = delete;
  RotatingFile& operator=(const RotatingFile&) = delete;

  Status open() {
    if (descriptor_ >= 0) return {};
    std::error_code ignored;  // a folder that cannot be made shows when the file is opened
    if (options_.path.has_parent_path())
      std::filesystem::create_directories(options_.path.parent_path(), ignored);
    constexpr mode_t kMode = 0640;  // waybills name callers
    descriptor_ = ::open(options_.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kMode);
    struct stat facts{};
    if (descriptor_ < 0 || ::fstat(descriptor_, &facts) != 0) return failure("open");
    size_ = static_cast<std::uint64_t>(facts.st_size);
    return {};
  }

  // Whole lines. A rotated file never has more than it may, but for a single line that is longer.
  Status append(std::string_view lines) {
    if (size_ > 0 && size_ + lines.size() > options_.max_bytes) rotate();
    if (Status opened = open(); !opened) return opened;
    const std::uint64_t before = size_;
    while (!lines.empty()) {
      const ssize_t n = ::write(descriptor_, lines.data(), lines.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        const int error = std::exchange(errno, 0);
        drop_after(before);
        errno = error;
        return failure("write");
      }
      size_ += static_cast<std::uint64_t>(n);
      lines.remove_prefix(static_cast<std::size_t>(n));
    }
    return {};
  }

  // Bytes that may be appended before the file is rotated.
  [[nodiscard]] std::uint64_t room() const noexcept {
    return size_ < options_.max_bytes ? options_.max_bytes - size_ : 0;
  }

 private:
  // A line that a full disk has cut would spoil the next one too. Not where others write, or have cut, the
  // file.
  void drop_after(std::uint64_t size) {
    struct stat facts{};
    if (size_ == size || ::fstat(descriptor_, &facts) != 0) return;
    if (S_ISREG(facts.st_mode) && static_cast<std::uint64_t>(facts.st_size) == size_)
      (void)!::ftruncate(descriptor_, static_cast<off_t>(size));
  }

  std::filesystem::path rotated(unsigned i) const {
    std::filesystem::path path = options_.path;
    path += fmt::format(".{}", i);
    return path;
  }

  void rotate() {
    close();
    std::error_code
        ignored;  // one that is missing, or stays: then the file goes on growing, and nothing is lost
    for (unsigned i = options_.keep; i > 1; --i) std::filesystem::rename(rotated(i - 1), rotated(i), ignored);
    if (options_.keep > 0) {
      std::filesystem::rename(options_.path, rotated(1), ignored);
    } else {
      std::filesystem::remove(options_.path, ignored);
    }
  }

  Status failure(const char* verb) {
    const int error = errno;
    close();
    return waybill::fail(
        ErrorCode::kIo,
        fmt::format("cannot {} the waybill file {}: {}", verb, options_.path.string(), std::strerror(error)),
        "telemetry.waybills.file");
  }

  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    size_ = 0;
  }

  const WaybillFileOptions options_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

class Writer final : public QueueConsumer<Record> {
 public:
  Writer(std::unique_ptr<RotatingFile> file, std::shared_ptr<Trouble> trouble)
      : file_(std::move(file)), trouble_(std::move(trouble)) {}

  void consume(std::deque<Record>& batch, StopSignal& /*stop*/) noexcept override {
    for (const Record& record : batch) {
      line_.clear();
      JsonWriter json(line_);
      write_record(json, record);
      line_ += '\n';
      constexpr std::size_t kSendAbove = 1U << 16;
      if (lines_ > 0 && (buffer_.size() + line_.size() > file_->room() || buffer_.size() > kSendAbove))
        send();
      buffer_ += line_;
      ++lines_;
    }
    send();
  }

 private:
  void send() {
    if (const Status sent = file_->append(buffer_); !sent) {
      trouble_->lines.fetch_add(lines_, std::memory_order_relaxed);
      const std::scoped_lock lock(trouble_->mutex);
      trouble_->text = sent.error().message;
    }
    buffer_.clear();
    lines_ = 0;
  }

  const std::unique_ptr<RotatingFile> file_;
  const std::shared_ptr<Trouble> trouble_;
  std::string line_, buffer_;
  std::uint64_t lines_ = 0;  // in buffer_
};

}  // namespace

struct WaybillFile::Impl {
  Impl(const WaybillFileOptions& options, std::unique_ptr<RotatingFile> file,
       const std::shared_ptr<Trouble>& shared)
      : trouble(shared),
        queue({.thread_name = "waybill-file",
               .capacity = options.queue,
               .batch = 1024,
               .linger = std::chrono::milliseconds(20)},
              std::make_unique<Writer>(std::move(file), shared)) {}

  const std::shared_ptr<Trouble> trouble;
  BackgroundQueue<Record> queue;
};

WaybillFile::WaybillFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WaybillFile::~WaybillFile() = default;

Result<std::unique_ptr<WaybillFile>> WaybillFile::open(const WaybillFileOptions& options) {
  auto file = std::make_unique<RotatingFile>(options);
  if (Status opened = file->open(); !opened) return std::unexpected(std::move(opened).error());
  auto impl = std::make_unique<Impl>(options, std::move(file), std::make_shared<Trouble>());
  return std::unique_ptr<WaybillFile>(new WaybillFile(std::move(impl)));
}

void WaybillFile::closed(const Record& record) noexcept { impl_->queue.push(record); }

std::uint64_t WaybillFile::dropped() const noexcept {
  return impl_->queue.dropped() + impl_->trouble->lines.load(std::memory_order_relaxed);
}

std::string WaybillFile::last_error() const {
  const std::scoped_lock lock(impl_->trouble->mutex);
  return impl_->trouble->text;
}

void WaybillFile::stop(Duration bound) { impl_->queue.stop(bound); }

}  // namespace waybill::telemetry
