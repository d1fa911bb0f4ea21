// Seeded random operations beside a model that is too simple to be wrong; a part of the suite of all back
// ends: INSTANTIATE_TEST_SUITE_P(Sqlite, StoreProperties, testing::Values(Backend{...})).
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/store_conformance_test.h"

namespace waybill::store {

// What is known of a job without asking the store.
struct Known {
  std::string queue, caller;
  State state = State::kQueued;
  std::uint64_t fence = 0;
  bool own = false;
  std::size_t endings = 0;
};

class StoreProperties : public StoreConformance {
 protected:
  std::size_t random(std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_);
  }
  bool one_in(std::size_t n) { return random(n) == 0; }

  void follow() {
    for (const Change& change : changes_) {
      if (change.removed) {
        EXPECT_TRUE(is_terminal(known_.at(change.id).state));
        known_.erase(change.id);
        leases_.erase(change.id);
        continue;
      }
      Known& known = known_.at(change.id);
      if (change.events) continue;
      known.state = change.state;
      EXPECT_GE(change.fence, known.fence);
      known.fence = change.fence;
      if (change.state != State::kRunning) leases_.erase(change.id);
      EXPECT_EQ(change.result != 0, is_terminal(change.state));
    }
  }

  void submit_some() {
    std::vector<Command> commands;
    for (std::size_t i = 0; i <= random(6); ++i) {
      Submit submit = a_job(one_in(3) ? "a" : "b", one_in(3) ? "x" : one_in(2) ? "y" : "z");
      submit.priority = static_cast<int>(random(3));
      submit.max_receives = static_cast<std::uint32_t>(1 + random(3));
      if (one_in(4)) submit.run_after = now_ + static_cast<Time>(random(30)) * kSecond;
      if (one_in(5)) submit.expires = now_ + static_cast<Time>(1 + random(60)) * kSecond;
      if (one_in(5)) submit.webhook = "https://example.com/";
      if (one_in(8)) submit.running_until = now_ + 30 * kSecond;
      if (one_in(4)) submit.body = std::string(200 + random(300), 'x');
      if (one_in(2)) {
        const std::uint64_t key = random(40);
        submit.key = a_key(key, key, now_ + 20 * kSecond);
      }
      commands.emplace_back(std::move(submit));
    }
    const std::vector<Command> sent = commands;
    const std::vector<Reply> replies = apply_all(std::move(commands));
    for (std::size_t i = 0; i < replies.size(); ++i) {
      const auto& submit = std::get<Submit>(sent[i]);
      const auto& reply = std::get<Submit::Reply>(replies[i]);
      if (reply.how == Submit::How::kNew) {
        EXPECT_TRUE(
            known_.emplace(reply.id, Known{submit.queue, submit.caller, reply.state, 0, true, 0}).second)
            << "an id was given twice";
        if (reply.state == State::kRunning) leases_[reply.id] = {reply.id, reply.fence};
        if (submit.key) {
          const auto [place, is_new] = keys_.try_emplace(submit.key->key.high, reply.id, submit.key->until);
          EXPECT_TRUE(is_new || place->second.second <= now_ || !known_.contains(place->second.first))
              << "a key has two jobs";
          place->second = {reply.id, submit.key->until};
        }
      } else {
        EXPECT_EQ(reply.how, Submit::How::kExisting);
        EXPECT_EQ(reply.id, keys_.at(submit.key->key.high).first);
      }
    }
    follow();
  }

  void claim_some() {
    Claim claim;
    claim.queue = one_in(2) ? "a" : "b";
    claim.max = 1 + random(5);
    claim.until = now_ + 20 * kSecond;
    claim.own = !one_in(3);
    const Claim::Reply reply = apply(claim);
    EXPECT_LE(reply.size(), claim.max);
    for (const Claim::Leased& leased : reply) {
      Known& known = known_.at(leased.job.id);
      EXPECT_EQ(known.state, State::kQueued) << "leased twice, or what was not queued";
      EXPECT_EQ(known.queue, claim.queue);
      EXPECT_GT(leased.job.fence, known.fence);
      known.own = claim.own;
      leases_[leased.job.id] = lease_of(leased);
    }
    const auto leases = leases_;
    follow();
    leases_ = leases;
    std::erase_if(leases_, [this](const auto& one) { return known_.at(one.first).state != State::kRunning; });
  }

  void use_a_lease() {
    if (leases_.empty()) return;
    auto place = leases_.begin();
    std::advance(place, static_cast<std::ptrdiff_t>(random(leases_.size())));
    Lease lease = place->second;
    const bool stale = one_in(4);
    if (stale) lease.fence -= 1;
    const Held wanted = stale ? Held::kStale : Held::kDone;
    switch (random(6)) {
      case 0:
      case 1:
        EXPECT_EQ(apply(Finish{lease, one_in(4) ? State::kFailed : State::kCompleted,
                               an_answer(std::string(random(600), 'r'))}),
                  wanted);
        break;
      case 2:
        EXPECT_EQ(apply(Fail{lease, {}, now_ + static_cast<Time>(random(20)) * kSecond}).held, wanted);
        break;
      case 3:
        EXPECT_EQ(apply(Release{lease, one_in(2) ? kNever : now_ + kSecond}), wanted);
        break;
      case 4:
        EXPECT_EQ(apply(Start{lease}), wanted);
        break;
      default:
        EXPECT_EQ(apply(Renew{{lease}, now_ + 20 * kSecond}), std::vector<Held>{wanted});
    }
    if (stale) {
      EXPECT_TRUE(changes_.empty());
    }
    follow();
  }

  void control_one() {
    if (known_.empty()) return;
    auto place = known_.begin();
    std::advance(place, static_cast<std::ptrdiff_t>(random(known_.size())));
    const Uuid id = place->first;
    const State before = place->second.state;
    switch (random(4)) {
      case 0:
        EXPECT_EQ(apply(Cancel{id}).before, before);
        break;
      case 1:
        EXPECT_EQ(apply(Retry{id}).before, before);
        break;
      case 2:
        EXPECT_EQ(apply(Remove{id}).before, before);
        break;
      default: {
        Redrive redrive;
        redrive.max = 3;
        apply(redrive);
      }
    }
    follow();
  }

  void sweep_some() {
    apply(Sweep{{{"a", 50 * kSecond, 60 * kSecond, 70 * kSecond}, {"b", 40 * kSecond, 0, 90 * kSecond}},
                {"b"},
                1 + random(20)});
    follow();
  }

  // Nothing was lost and nothing came of nothing; the endings are those of the jobs that have ended, each
  // once.
  void check() {
    JobFilter all;
    all.limit = 1'000'000;
    std::map<Uuid, State> told;
    for (const Job& job : store().list(all).value()) {
      EXPECT_TRUE(told.emplace(job.id, job.state).second);
      EXPECT_EQ(job.result != 0, is_terminal(job.state));
    }
    std::map<Uuid, State> expected;
    std::set<Uuid> ended;
    for (const auto& [id, known] : known_) {
      expected.emplace(id, known.state);
      if (is_terminal(known.state)) ended.insert(id);
    }
    EXPECT_EQ(told, expected);
    std::set<Uuid> endings;
    for (const Ending& ending : store().endings(0, 1'000'000).value()) {
      EXPECT_TRUE(endings.insert(ending.id).second);
      EXPECT_EQ(ending.state, known_.at(ending.id).state);
    }
    EXPECT_EQ(endings, ended);
    expect_depths_to_be_a_recount();
  }

  void run(std::uint64_t seed, int steps) {
    SCOPED_TRACE("WAYBILL_STORE_SEED=" + std::to_string(seed));
    random_.seed(seed);
    for (int step = 0; step < steps && !HasFailure(); ++step) {
      now_ += static_cast<Time>(random(3000)) * kMs;
      switch (random(12)) {
        case 0:
        case 1:
        case 2:
          submit_some();
          break;
        case 3:
        case 4:
          claim_some();
          break;
        case 5:
        case 6:
        case 7:
        case 8:
          use_a_lease();
          break;
        case 9:
          control_one();
          break;
        case 10:
          sweep_some();
          break;
        default:
          if (one_in(6)) {
            reopen();
            std::erase_if(leases_, [this](const auto& one) { return known_.at(one.first).own; });
          }
      }
      if (step % 50 == 0) check();
    }
    check();
  }

  std::mt19937_64 random_;
  std::map<Uuid, Known> known_;
  std::map<Uuid, Lease> leases_;  // valid ones
  std::map<std::uint64_t, std::pair<Uuid, Time>> keys_;
};

}  // namespace waybill::store
