// What every back end of the store has to do. A back end instantiates the suites with how it is opened:
// INSTANTIATE_TEST_SUITE_P(Sqlite, StoreConformance, testing::Values(Backend{...})).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/temporary_folder_test.h"
#include "store/store.h"

namespace waybill::store {

struct Backend {
  std::string name;
  // Opens what is kept at `folder`; bodies and results of more than 256 bytes are large to it.
  std::function<Result<std::unique_ptr<Store>>(const std::filesystem::path& folder)> open;
};

inline void PrintTo(const Backend& backend, std::ostream* out) { *out << backend.name; }

inline constexpr Time kMs = 1000, kSecond = 1'000'000, kHour = 3600 * kSecond;
inline constexpr Time kStart = 1'700'000'000 * kSecond;

[[nodiscard]] Submit a_job(std::string queue = "q", std::string caller = "c");
[[nodiscard]] IdempotencyKey a_key(std::uint64_t key, std::uint64_t payload,
                                   Time until = kStart + 24 * kHour);
[[nodiscard]] Lease lease_of(const Claim::Leased& leased);
[[nodiscard]] JobResult an_answer(std::string body = "{}");

// A store and a clock that the test owns. Failures of the store are failures of the test.
class StoreConformance : public testing::TestWithParam<Backend> {
 protected:
  StoreConformance() { open(); }

  void open();
  void close() { store_.reset(); }
  void reopen() {
    close();
    open();
  }
  [[nodiscard]] Store& store() { return *store_; }

  // One command, one transaction.
  template <class C>
  typename C::Reply apply(C command) {
    std::vector<Command> commands;
    commands.emplace_back(std::move(command));
    return take_reply<C>(std::move(apply_all(std::move(commands)).front()));
  }
  std::vector<Reply> apply_all(std::vector<Command> commands);

  Uuid submit(Submit submit);
  [[nodiscard]] std::vector<Claim::Leased> claim(std::size_t max = 1, std::string queue = "q");
  [[nodiscard]] Claim::Leased claim_one(std::string queue = "q");
  [[nodiscard]] Job job(const Uuid& id);
  [[nodiscard]] State state(const Uuid& id) { return job(id).state; }
  Sweep::Reply sweep() { return apply(Sweep{}); }
  // The depths must be what there is.
  void expect_depths_to_be_a_recount();

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  std::vector<Change> changes_;  // of the last transaction
  Time now_ = kStart;
};

}  // namespace waybill::store
