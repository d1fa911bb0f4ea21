// What the store alone can do: changes per second and CPU time of each, at so many of them in a transaction.
//   store_bench [FOLDER [QUEUED]]     FOLDER on the disk that is meant; QUEUED jobs are there before
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include "store/sqlite/sqlite_store.h"

namespace {

using namespace waybill;
using namespace waybill::store;

constexpr std::size_t kBody = 600, kResult = 2048;

Time now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

double process_cpu_seconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

std::vector<Reply> commit(Store& store, std::span<const Command> commands) {
  Result<Committed> committed = store.commit(commands, now());
  if (!committed) {
    fmt::print(stderr, "{}\n", committed.error().message);
    std::exit(1);
  }
  return std::move(committed->replies);
}

std::mt19937_64 random_bits(1);

Submit a_submit(bool key) {
  Submit submit;
  submit.queue = "default";
  submit.caller = fmt::format("caller-{}", random_bits() % 8);
  submit.endpoint = "/v1/chat/completions";
  submit.body.assign(kBody, 'b');
  submit.attributes = R"({"correlation_id":"0192e4a0-7b5c-7000-8000-000000000000"})";
  if (key)
    submit.key = IdempotencyKey{
        {random_bits(), random_bits()}, {random_bits(), random_bits()}, now() + 86'400'000'000};
  return submit;
}

struct Figure {
  double seconds = 0, cpu = 0, all_cpu = 0;
  std::size_t rows = 0;
  std::vector<double> lengths;  // of transactions, ms

  void add(Store& store, std::span<const Command> commands, std::size_t count,
           std::vector<Reply>* replies = nullptr) {
    const auto begun = std::chrono::steady_clock::now();
    const double before = cpu_seconds(), all_before = process_cpu_seconds();
    std::vector<Reply> came = commit(store, commands);
    cpu += cpu_seconds() - before;
    all_cpu += process_cpu_seconds() - all_before;
    const double length = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    seconds += length;
    lengths.push_back(length * 1e3);
    rows += count;
    if (replies != nullptr) *replies = std::move(came);
  }

  void print(const char* what, std::size_t batch) {
    std::ranges::sort(lengths);
    const double n = static_cast<double>(rows);
    fmt::print(
        "{:8} {:5} {:9.0f} rows/s  {:6.1f} us CPU/row  {:6.1f} with checkpoints  p50 {:6.2f}  p99 {:6.2f}  "
        "max {:6.2f} ms\n",
        what, batch, n / seconds, cpu / n * 1e6, all_cpu / n * 1e6, lengths[lengths.size() / 2],
        lengths[lengths.size() * 99 / 100], lengths.back());
  }
};

void lives(Store& store, std::size_t batch, std::size_t total) {
  Figure submit, claim, start, finish, pass;
  for (std::size_t done = 0; done < total; done += batch) {
    std::vector<Command> commands;
    for (std::size_t i = 0; i < batch; ++i) commands.emplace_back(a_submit(true));
    submit.add(store, commands, batch);
  }
  for (std::size_t done = 0; done < total;) {
    Claim one;
    one.queue = "default";
    one.max = batch;
    one.until = now() + 60'000'000;
    std::vector<Command> commands;
    commands.emplace_back(one);
    std::vector<Reply> replies;
    claim.add(store, commands, batch, &replies);
    auto leased = take_reply<Claim>(std::move(replies.front()));
    if (leased.empty()) break;
    done += leased.size();
    std::vector<Command> starts, finishes;
    for (const Claim::Leased& job : leased) {
      starts.emplace_back(Start{{job.job.id, job.job.fence}});
      finishes.emplace_back(Finish{{job.job.id, job.job.fence},
                                   State::kCompleted,
                                   {200, "application/json", std::string(kResult, 'r'), R"({"model":"m"})"}});
    }
    start.add(store, starts, starts.size());
    finish.add(store, finishes, finishes.size());
  }
  submit.print("submit", batch);
  claim.print("claim", batch);
  start.print("start", batch);
  finish.print("finish", batch);
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path folder = argc > 1 ? argv[1] : "store_bench.tmp";
  const std::size_t queued = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  std::filesystem::remove_all(folder);
  sqlite::SqliteOptions options;
  options.path = folder / "jobs.db";
  auto store = sqlite::open_sqlite_store(options);
  if (!store) {
    fmt::print(stderr, "{}\n", store.error().message);
    return 1;
  }
  for (std::size_t done = 0; done < queued; done += 512) {
    std::vector<Command> commands;
    for (std::size_t i = 0; i < 512; ++i) commands.emplace_back(a_submit(true));
    commit(**store, commands);
  }
  if (queued != 0) {
    store->reset();
    const auto begun = std::chrono::steady_clock::now();
    store = sqlite::open_sqlite_store(options);
    if (!store) return 1;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    fmt::print("opened {} jobs in {:.0f} ms; {} MiB at most so far\n", queued,
               std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count(),
               usage.ru_maxrss / 1024);
  }
  for (const auto& [batch, total] : {std::pair{1U, 2000U}, {16U, 16'000U}, {64U, 32'000U}, {256U, 51'200U}}) {
    lives(**store, batch, total);
  }
  const StoreStats stats = (*store)->stats().value();
  fmt::print("{} jobs, file {} MiB, log {} MiB not merged\n", stats.jobs, stats.file_bytes >> 20,
             stats.log_bytes >> 20);
  store->reset();
  std::filesystem::remove_all(folder);
}
