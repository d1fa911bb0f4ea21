#include "jobs/running_job.h"

#include <chrono>
#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>

namespace waybill::jobs {
namespace {

// Events that come within this time are written together.
constexpr Duration kBetweenAppends = std::chrono::milliseconds(50);
constexpr Duration kAppendAgain = std::chrono::seconds(1);  // when the store did not take them
// Of one job, while the store does not take them. They are news, not the answer, which is kept apart.
constexpr std::size_t kMostUnwritten = 4U << 20;
// The performer knows the deadline; this is for one that does not heed it.
constexpr Duration kGrace = std::chrono::seconds(5);

}  // namespace

RunningJob::RunningJob(store::Claim::Leased leased, std::shared_ptr<const config::JobQueue> queue,
                       http::EventLoop& loop, store::Writer& writer, std::function<void(Ended)> ended)
    : leased_(std::move(leased)),
      queue_(std::move(queue)),
      loop_(loop),
      writer_(writer),
      ended_(std::move(ended)) {}

void RunningJob::start(Performer& performer) {
  deadline_ = std::chrono::steady_clock::now() + queue_->timeout;
  overdue_ = std::make_unique<http::Deadline>(loop_, [this] { cancel(Why::kOverdue); });
  overdue_->set(deadline_ + kGrace);
  next_append_ = std::make_unique<http::Deadline>(loop_, [this] {
    is_pausing_ = false;
    append();
  });
  boost::asio::co_spawn(loop_.context(), run(shared_from_this(), performer),
                        [](const std::exception_ptr&) {});
}

void RunningJob::cancel(Why why) {
  if (why_ == Why::kNone || why == Why::kLost) why_ = why;
  cancellation_.request();
}

void RunningJob::abandon() {
  cancel(Why::kShutDown);
  overdue_.reset();
  next_append_.reset();
}

http::Task<> RunningJob::run(std::shared_ptr<RunningJob> self, Performer& performer) {
  RunningJob& job = *self;
  Ended ended;
  if (!job.cancellation_.requested()) {
    try {
      Performed performed = co_await performer.perform(job);
      ended.performed = std::move(performed);
      ended.answered = true;
    } catch (const std::exception& thrown) {
      ended.threw = thrown.what();
      ended.performed.status = 500;
      ended.performed.body =
          R"({"error":{"code":"internal_error","message":"the call ended with an exception"}})";
    }
  }
  if (job.is_appending_) {
    http::Pending<bool> pending;
    job.append_ended_ = &pending;
    (void)co_await pending.get();
    job.append_ended_ = nullptr;
  }
  job.overdue_.reset();
  job.next_append_.reset();
  ended.why = job.why_;
  ended.begun = job.begun_;
  ended.events = std::move(job.unwritten_);
  std::exchange(job.ended_, nullptr)(std::move(ended));
}

http::Task<Status> RunningJob::call_begins() {
  if (begun_) co_return Status{};
  if (!cancellation_.requested()) {
    http::Pending<Result<store::Held>> pending;
    writer_.commit(store::Start{lease()}, loop_,
                   [&pending](Result<store::Held> held) { pending.set(std::move(held)); });
    const Result<store::Held> held = co_await pending.get();
    if (!held) co_return std::unexpected(held.error());
    if (*held != store::Held::kDone) cancel(Why::kLost);
  }
  if (cancellation_.requested())
    co_return fail(ErrorCode::kCancelled, "the job was taken back before its call began");
  begun_ = true;
  co_return Status{};
}

void RunningJob::events(std::string_view events) {
  if (unwritten_.size() + events.size() > kMostUnwritten) {
    events_dropped_ = true;  // what follows would not fit to what came before
    return;
  }
  if (events_dropped_) return;
  unwritten_ += events;
  append();
}

void RunningJob::append() {
  const bool may_append = !is_appending_ && !is_pausing_ && next_append_ != nullptr;
  if (!may_append || unwritten_.empty() || cancellation_.requested()) return;
  is_appending_ = true;
  writing_ = std::exchange(unwritten_, {});
  writer_.commit(store::Append{lease(), writing_}, loop_,
                 [self = shared_from_this()](Result<store::Held> held) { self->appended(std::move(held)); });
}

void RunningJob::appended(Result<store::Held> held) {
  is_appending_ = false;
  const bool written = held.has_value();
  if (held) {
    if (*held != store::Held::kDone) cancel(Why::kLost);
  } else {
    unwritten_.insert(0, writing_);
  }
  writing_.clear();
  if (append_ended_ != nullptr) return append_ended_->set(true);
  if (next_append_ == nullptr) return;
  // More at once would be a transaction for each token.
  is_pausing_ = true;
  next_append_->set(std::chrono::steady_clock::now() + (written ? kBetweenAppends : kAppendAgain));
}

}  // namespace waybill::jobs
