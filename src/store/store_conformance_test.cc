#include "store/store_conformance_test.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <tuple>

namespace waybill::store {

Submit a_job(std::string queue, std::string caller) {
  Submit submit;
  submit.queue = std::move(queue);
  submit.caller = std::move(caller);
  submit.endpoint = "/v1/chat/completions";
  submit.body = R"({"messages": []})";
  return submit;
}

IdempotencyKey a_key(std::uint64_t key, std::uint64_t payload, Time until) {
  return {{key * 0x9E3779B97F4A7C15U, key}, {payload, ~payload}, until};
}

Lease lease_of(const Claim::Leased& leased) { return {leased.job.id, leased.job.fence}; }

JobResult an_answer(std::string body) {
  return {200, "application/json", std::move(body), R"({"model": "m"})"};
}

void StoreConformance::open() {
  Result<std::unique_ptr<Store>> opened = GetParam().open(folder_.path());
  ASSERT_TRUE(opened) << opened.error().message;
  store_ = std::move(*opened);
}

std::vector<Reply> StoreConformance::apply_all(std::vector<Command> commands) {
  Result<Committed> committed = store_->commit(commands, now_);
  if (!committed) {
    ADD_FAILURE() << committed.error().message;
    std::abort();
  }
  changes_ = std::move(committed->changes);
  return std::move(committed->replies);
}

Uuid StoreConformance::submit(Submit submit) {
  const Submit::Reply reply = apply(std::move(submit));
  EXPECT_EQ(reply.how, Submit::How::kNew);
  return reply.id;
}

std::vector<Claim::Leased> StoreConformance::claim(std::size_t max, std::string queue) {
  Claim claim;
  claim.queue = std::move(queue);
  claim.max = max;
  claim.until = now_ + 60 * kSecond;
  return apply(std::move(claim));
}

Claim::Leased StoreConformance::claim_one(std::string queue) {
  std::vector<Claim::Leased> leased = claim(1, std::move(queue));
  EXPECT_EQ(leased.size(), 1U);
  return leased.empty() ? Claim::Leased{} : std::move(leased.front());
}

Job StoreConformance::job(const Uuid& id) {
  Result<std::optional<Job>> found = store_->find(id);
  EXPECT_TRUE(found && *found);
  return found && *found ? **found : Job{};
}

void StoreConformance::expect_depths_to_be_a_recount() {
  std::map<std::tuple<std::string, std::string, State>, std::uint64_t> counted, told;
  JobFilter all;
  all.limit = 1'000'000;
  const Result<std::vector<Job>> jobs = store_->list(all);
  ASSERT_TRUE(jobs);
  for (const Job& one : *jobs) ++counted[{one.queue, one.caller, one.state}];
  const Result<std::vector<Depth>> depths = store_->depths();
  ASSERT_TRUE(depths);
  for (const Depth& depth : *depths) {
    if (depth.jobs != 0) told[{depth.queue, depth.caller, depth.state}] = depth.jobs;
  }
  EXPECT_EQ(told, counted);
  const Result<StoreStats> stats = store_->stats();
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->jobs, jobs->size());
}

namespace {

std::vector<Uuid> ids_of(const std::vector<Claim::Leased>& leased) {
  std::vector<Uuid> ids;
  for (const Claim::Leased& one : leased) ids.push_back(one.job.id);
  return ids;
}

TEST_P(StoreConformance, ASubmittedJobIsFoundAsItWasGiven) {
  Submit submit = a_job("images", "alice");
  submit.attributes = R"({"correlation": "x"})";
  submit.metadata = R"({"user": "u1"})";
  submit.priority = 7;
  submit.expires = now_ + kHour;
  submit.max_receives = 5;
  submit.body = "the body";
  const Uuid id = this->submit(submit);
  const Job found = job(id);
  EXPECT_EQ(found.id, id);
  EXPECT_EQ(found.queue, "images");
  EXPECT_EQ(found.caller, "alice");
  EXPECT_EQ(found.state, State::kQueued);
  EXPECT_EQ(found.priority, 7);
  EXPECT_EQ(found.created, now_);
  EXPECT_EQ(found.run_after, kNever);
  EXPECT_EQ(found.expires, now_ + kHour);
  EXPECT_EQ(found.claimed, kNever);
  EXPECT_EQ(found.finished, kNever);
  EXPECT_EQ(found.receives, 0U);
  EXPECT_EQ(found.max_receives, 5U);
  EXPECT_EQ(found.fence, 0U);
  EXPECT_FALSE(found.started);
  EXPECT_EQ(found.endpoint, "/v1/chat/completions");
  EXPECT_EQ(found.attributes, R"({"correlation": "x"})");
  EXPECT_EQ(found.metadata, R"({"user": "u1"})");
  EXPECT_EQ(found.result, 0U);
  EXPECT_EQ(store().body(id).value(), "the body");
  EXPECT_EQ(store().result(id).value(), std::nullopt);
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_EQ(changes_[0].id, id);
  EXPECT_EQ(changes_[0].state, State::kQueued);
  EXPECT_EQ(changes_[0].queue, "images");
  EXPECT_EQ(changes_[0].caller, "alice");
}

TEST_P(StoreConformance, AnIdThatIsNotAJobsFindsNothing) {
  Uuid id = submit(a_job());
  id.bytes[15] ^= 1;  // the other half of the id is checked too
  EXPECT_EQ(store().find(id).value(), std::nullopt);
  EXPECT_EQ(store().body(id).value(), std::nullopt);
  EXPECT_FALSE(apply(Cancel{id}).found);
  EXPECT_EQ(apply(Start{{id, 1}}), Held::kGone);
}

TEST_P(StoreConformance, IdsRiseAlsoWhenTheClockStepsBack) {
  Uuid last{};
  for (int i = 0; i < 100; ++i) {
    if (i == 50) now_ -= kHour;
    if (i == 70) reopen();
    const Uuid id = submit(a_job());
    EXPECT_LT(last.high(), id.high());
    last = id;
  }
}

TEST_P(StoreConformance, OneKeyHasOneJob) {
  Submit submit = a_job();
  submit.key = a_key(1, 1);
  const Submit::Reply first = apply(submit), second = apply(submit);
  EXPECT_EQ(first.how, Submit::How::kNew);
  EXPECT_EQ(second.how, Submit::How::kExisting);
  EXPECT_EQ(second.id, first.id);
  EXPECT_EQ(second.state, State::kQueued);
  EXPECT_TRUE(changes_.empty());
  // Also within one transaction.
  submit.key = a_key(2, 2);
  std::vector<Reply> replies = apply_all({submit, submit});
  const auto third = take_reply<Submit>(replies[0]), fourth = take_reply<Submit>(replies[1]);
  EXPECT_EQ(third.how, Submit::How::kNew);
  EXPECT_EQ(fourth.how, Submit::How::kExisting);
  EXPECT_EQ(fourth.id, third.id);
  EXPECT_NE(third.id, first.id);
  EXPECT_EQ(store().list({}).value().size(), 2U);
}

TEST_P(StoreConformance, AKeyTellsHowItsJobStands) {
  Submit submit = a_job();
  submit.key = a_key(1, 1);
  apply(submit);
  const auto leased = claim_one();
  EXPECT_EQ(apply(submit).state, State::kRunning);
  apply(Finish{lease_of(leased), State::kCompleted, an_answer()});
  EXPECT_EQ(apply(submit).state, State::kCompleted);
}

TEST_P(StoreConformance, AKeyWithAnotherPayloadMakesNothing) {
  Submit submit = a_job();
  submit.key = a_key(1, 1);
  const Uuid id = this->submit(submit);
  submit.key = a_key(1, 2);
  const Submit::Reply reply = apply(submit);
  EXPECT_EQ(reply.how, Submit::How::kKeyReused);
  EXPECT_EQ(reply.id, id);
  EXPECT_EQ(store().list({}).value().size(), 1U);
}

TEST_P(StoreConformance, KeysThatShareHalfAHashAreDifferent) {
  std::vector<Uuid> ids;
  for (std::uint64_t i = 0; i < 3; ++i) {
    Submit submit = a_job();
    submit.key = IdempotencyKey{{42, i}, {i, i}, now_ + kSecond * static_cast<Time>(i + 1)};
    ids.push_back(this->submit(submit));
  }
  now_ += kSecond;  // the first is forgotten
  EXPECT_EQ(sweep().keys, 1U);
  for (std::uint64_t i = 1; i < 3; ++i) {
    Submit submit = a_job();
    submit.key = IdempotencyKey{{42, i}, {i, i}, now_ + kHour};
    const Submit::Reply reply = apply(submit);
    EXPECT_EQ(reply.how, Submit::How::kExisting);
    EXPECT_EQ(reply.id, ids[i]);
  }
  Submit submit = a_job();
  submit.key = IdempotencyKey{{42, 0}, {0, 0}, now_ + kHour};
  EXPECT_EQ(apply(submit).how, Submit::How::kNew);
  EXPECT_EQ(apply(submit).how, Submit::How::kExisting);
  EXPECT_EQ(store().stats().value().keys, 3U);
}

TEST_P(StoreConformance, AKeyIsForgottenWhenItsTimeHasPassed) {
  Submit submit = a_job();
  submit.key = a_key(1, 1, now_ + kSecond);
  const Uuid first = this->submit(submit);
  now_ += kSecond;
  submit.key = a_key(1, 2, now_ + kSecond);  // also before the sweep, and for another payload
  const Uuid second = this->submit(submit);
  EXPECT_NE(first, second);
  EXPECT_EQ(sweep().keys, 0U);
  now_ += kSecond;
  EXPECT_EQ(sweep().keys, 1U);
  EXPECT_EQ(store().stats().value().keys, 0U);
}

TEST_P(StoreConformance, ManyKeysAreForgottenInTheEnd) {
  std::vector<Command> commands;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    Submit submit = a_job();
    submit.key = a_key(i, i, now_ + (i % 3 == 0 ? kSecond : kHour));
    commands.emplace_back(std::move(submit));
  }
  apply_all(std::move(commands));
  EXPECT_EQ(store().stats().value().keys, 1000U);
  const auto forget = [this] {
    std::size_t keys = 0;
    for (int i = 0; i < 100; ++i) keys += apply(Sweep{{}, {}, 10}).keys;
    return keys;
  };
  now_ += kSecond;
  EXPECT_EQ(forget(), 334U);
  EXPECT_EQ(forget(), 0U);
  now_ += kHour;
  EXPECT_EQ(forget(), 666U);
  EXPECT_EQ(store().stats().value().keys, 0U);
}

TEST_P(StoreConformance, AFullQueueTakesNoMore) {
  Submit submit = a_job();
  submit.max_depth = 2;
  submit.key = a_key(1, 1);
  const Uuid first = this->submit(submit);
  submit.key.reset();
  submit.run_after = now_ + kHour;  // what is scheduled waits too
  this->submit(submit);
  const Submit::Reply refused = apply(submit);
  EXPECT_EQ(refused.how, Submit::How::kQueueFull);
  submit.key = a_key(2, 2);
  EXPECT_EQ(apply(submit).how, Submit::How::kQueueFull);
  submit.key = a_key(1, 1);
  EXPECT_EQ(apply(submit).id, first);  // nothing is made of it
  submit.queue = "other";
  EXPECT_EQ(apply(submit).how, Submit::How::kExisting);
  submit.key.reset();
  EXPECT_EQ(apply(submit).how, Submit::How::kNew);
  static_cast<void>(claim_one());
  submit.queue = "q";
  EXPECT_EQ(apply(submit).how, Submit::How::kNew);
}

TEST_P(StoreConformance, AJobMayBeginAsARunningOne) {
  Submit submit = a_job();
  submit.running_until = now_ + 60 * kSecond;
  const Submit::Reply reply = apply(submit);
  EXPECT_EQ(reply.how, Submit::How::kNew);
  EXPECT_EQ(reply.state, State::kRunning);
  EXPECT_EQ(reply.fence, 1U);
  const Job found = job(reply.id);
  EXPECT_TRUE(found.started);
  EXPECT_EQ(found.receives, 1U);
  EXPECT_EQ(found.claimed, now_);
  EXPECT_TRUE(claim().empty());
  EXPECT_EQ(apply(Finish{{reply.id, reply.fence}, State::kCompleted, an_answer("done")}), Held::kDone);
  EXPECT_EQ(store().result(reply.id).value()->body, "done");
}

TEST_P(StoreConformance, ClaimsTheHigherPriorityAndThenTheOlder) {
  Submit low = a_job(), high = a_job();
  high.priority = 5;
  const Uuid a = submit(low), b = submit(high), c = submit(low), d = submit(high);
  const auto leased = claim(10);
  EXPECT_EQ(ids_of(leased), (std::vector<Uuid>{b, d, a, c}));
  EXPECT_TRUE(claim().empty());
}

TEST_P(StoreConformance, AClaimGivesTheJobItsBodyAndItsLease) {
  Submit submit = a_job();
  submit.body = "what is asked";
  submit.attributes = "{}";
  const Uuid id = this->submit(submit);
  now_ += kSecond;
  const Claim::Leased leased = claim_one();
  EXPECT_EQ(leased.job.id, id);
  EXPECT_EQ(leased.body, "what is asked");
  EXPECT_EQ(leased.job.attributes, "{}");
  EXPECT_EQ(leased.job.state, State::kRunning);
  EXPECT_EQ(leased.job.receives, 1U);
  EXPECT_EQ(leased.job.fence, 1U);
  EXPECT_EQ(leased.job.claimed, now_);
  EXPECT_FALSE(leased.job.started);
  const Job found = job(id);
  EXPECT_EQ(found.state, State::kRunning);
  EXPECT_EQ(found.fence, 1U);
}

TEST_P(StoreConformance, CallersTakeTurns) {
  std::map<std::string, int> left = {{"a", 6}, {"b", 2}, {"c", 1}};
  for (const auto& [caller, jobs] : left) {
    for (int i = 0; i < jobs; ++i) submit(a_job("q", caller));
  }
  // As long as they have any, nobody gets two more than another; one by one, and several at a time.
  std::map<std::string, int> got;
  for (const std::size_t max : {1U, 1U, 1U, 2U}) {
    for (const Claim::Leased& one : claim(max)) ++got[one.job.caller];
  }
  EXPECT_EQ(got["a"], 2);
  EXPECT_EQ(got["b"], 2);
  EXPECT_EQ(got["c"], 1);
  EXPECT_EQ(claim(100).size(), 4U);
}

TEST_P(StoreConformance, ACallerWhoComesLateDoesNotWaitForTheBacklogOfAnother) {
  for (int i = 0; i < 50; ++i) submit(a_job("q", "batch"));
  static_cast<void>(claim(10));
  const Uuid late = submit(a_job("q", "late"));
  const std::vector<Uuid> next = ids_of(claim(2));
  EXPECT_NE(std::ranges::find(next, late), next.end());
}

TEST_P(StoreConformance, AQueueGivesItsOwnJobsOnly) {
  submit(a_job("other"));
  EXPECT_TRUE(claim(10, "q").empty());
  EXPECT_TRUE(claim(10, "unheard of").empty());
  EXPECT_EQ(claim(10, "other").size(), 1U);
}

TEST_P(StoreConformance, AStaleLeaseFinishesNothing) {
  submit(a_job());
  const Claim::Leased first = claim_one();
  apply(Release{lease_of(first), kNever});
  const Claim::Leased second = claim_one();
  EXPECT_EQ(second.job.id, first.job.id);
  EXPECT_GT(second.job.fence, first.job.fence);
  const Lease stale = lease_of(first);
  EXPECT_EQ(apply(Start{stale}), Held::kStale);
  EXPECT_EQ(apply(Finish{stale, State::kCompleted, an_answer()}), Held::kStale);
  EXPECT_EQ(apply(Fail{stale, {}, kNever}).held, Held::kStale);
  EXPECT_EQ(apply(Release{stale, kNever}), Held::kStale);
  EXPECT_EQ(apply(Append{stale, "x"}), Held::kStale);
  EXPECT_EQ(apply(Renew{{stale, lease_of(second)}, now_ + kHour}),
            (std::vector<Held>{Held::kStale, Held::kDone}));
  EXPECT_TRUE(changes_.empty());
  EXPECT_EQ(state(first.job.id), State::kRunning);
  EXPECT_EQ(apply(Finish{lease_of(second), State::kCompleted, an_answer()}), Held::kDone);
  EXPECT_EQ(apply(Finish{lease_of(second), State::kCompleted, an_answer()}), Held::kStale);
}

TEST_P(StoreConformance, AFinishedJobHasItsResultAndItsPlaceInTheOrderOfEndings) {
  const Uuid a = submit(a_job()), b = submit(a_job());
  const auto leased = claim(2);
  now_ += kSecond;
  apply(Finish{lease_of(leased[1]), State::kFailed, {404, "text/plain", "no such model", ""}});
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_EQ(changes_[0].state, State::kFailed);
  apply(Finish{lease_of(leased[0]), State::kCompleted, an_answer("the answer")});
  const Job done = job(a);
  EXPECT_EQ(done.state, State::kCompleted);
  EXPECT_EQ(done.finished, now_);
  EXPECT_EQ(changes_[0].result, done.result);
  EXPECT_GT(done.result, job(b).result);
  const auto result = store().result(a).value();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status, 200U);
  EXPECT_EQ(result->content_type, "application/json");
  EXPECT_EQ(result->body, "the answer");
  EXPECT_EQ(result->facts, R"({"model": "m"})");
  EXPECT_EQ(store().result(b).value()->body, "no such model");
  const auto endings = store().endings(0, 10).value();
  ASSERT_EQ(endings.size(), 2U);
  EXPECT_EQ(endings[0].id, b);
  EXPECT_EQ(endings[0].state, State::kFailed);
  EXPECT_EQ(endings[1].id, a);
  EXPECT_EQ(endings[1].queue, "q");
  EXPECT_EQ(endings[1].caller, "c");
  EXPECT_EQ(store().endings(endings[0].number, 10).value().size(), 1U);
  EXPECT_EQ(store().endings(0, 1).value().size(), 1U);
}

TEST_P(StoreConformance, AFailedAttemptIsTriedAgainUntilItsReceivesAreUsedUp) {
  Submit submit = a_job();
  submit.max_receives = 2;
  const Uuid id = this->submit(submit);
  const Claim::Leased first = claim_one();
  apply(Start{lease_of(first)});
  EXPECT_TRUE(job(id).started);
  const Time claimed = now_;
  now_ += kSecond;
  const AttemptError error{0, kNever, now_, "upstream_failed", "it said no", 502, false};
  const Fail::Reply reply = apply(Fail{lease_of(first), error, now_ + 10 * kSecond});
  EXPECT_EQ(reply.held, Held::kDone);
  EXPECT_EQ(reply.state, State::kScheduled);
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_EQ(changes_[0].run_after, now_ + 10 * kSecond);
  EXPECT_TRUE(claim().empty());
  now_ += 9 * kSecond;
  EXPECT_EQ(sweep().queued, 0U);
  now_ += kSecond;
  EXPECT_EQ(sweep().queued, 1U);
  const Claim::Leased second = claim_one();
  EXPECT_EQ(second.job.receives, 2U);
  EXPECT_FALSE(second.job.started);
  EXPECT_EQ(apply(Fail{lease_of(second), error, now_ + 10 * kSecond}).state, State::kDead);
  const Job dead = job(id);
  EXPECT_EQ(dead.state, State::kDead);
  EXPECT_GT(dead.result, 0U);
  ASSERT_EQ(dead.errors.size(), 2U);
  EXPECT_EQ(store().list({}).value().at(0).errors.size(), 2U);
  EXPECT_EQ(dead.errors[0].receive, 1U);
  EXPECT_EQ(dead.errors[0].started, claimed);
  EXPECT_EQ(dead.errors[0].ended, claimed + kSecond);
  EXPECT_EQ(dead.errors[0].code, "upstream_failed");
  EXPECT_EQ(dead.errors[0].message, "it said no");
  EXPECT_EQ(dead.errors[0].status, 502U);
  EXPECT_EQ(dead.errors[1].receive, 2U);
  EXPECT_EQ(dead.in_doubt, 0U);
  EXPECT_EQ(store().result(id).value(), std::nullopt);
}

TEST_P(StoreConformance, AFailureWithoutATimeIsTriedAgainAtOnce) {
  const Uuid id = submit(a_job());
  EXPECT_EQ(
      apply(Fail{lease_of(claim_one()), {0, kNever, kNever, "upstream_timeout", "", 0, true}, kNever}).state,
      State::kQueued);
  EXPECT_EQ(job(id).in_doubt, 1U);
  EXPECT_EQ(claim_one().job.id, id);
}

TEST_P(StoreConformance, AFailureMayBeTheLastOne) {
  const Uuid id = submit(a_job());
  const Fail::Reply reply = apply(Fail{.lease = lease_of(claim_one()), .error = {}, .dead = true});
  EXPECT_EQ(reply.state, State::kDead);
  EXPECT_EQ(state(id), State::kDead);
  EXPECT_TRUE(claim(1).empty());
}

TEST_P(StoreConformance, AHeldJobDoesNotExpireByItself) {
  Submit submit = a_job();
  submit.expires = now_ + 2 * kHour;
  const Uuid doubtful = this->submit(submit);
  apply(Start{lease_of(claim_one())});
  now_ += kHour;
  apply(Sweep{{}, {"q"}, 1000});
  ASSERT_EQ(state(doubtful), State::kHeld);
  now_ += 2 * kHour;
  EXPECT_EQ(apply(Sweep{{}, {"q"}, 1000}).expired, 0U);
  EXPECT_EQ(state(doubtful), State::kHeld);
  EXPECT_EQ(apply(Retry{doubtful}).after, State::kQueued);
  EXPECT_EQ(claim_one().job.id, doubtful);
}

TEST_P(StoreConformance, AReleaseDoesNotCount) {
  Submit submit = a_job();
  submit.max_receives = 1;
  const Uuid id = this->submit(submit);
  for (int i = 0; i < 3; ++i) {
    const Claim::Leased leased = claim_one();
    EXPECT_EQ(leased.job.receives, 1U);
    apply(Start{lease_of(leased)});
    EXPECT_EQ(apply(Release{lease_of(leased), kNever}), Held::kDone);
    EXPECT_EQ(state(id), State::kQueued);
    EXPECT_FALSE(job(id).started);
  }
  apply(Release{lease_of(claim_one()), now_ + kSecond});
  EXPECT_EQ(state(id), State::kScheduled);
  EXPECT_TRUE(job(id).errors.empty());
  now_ += kSecond;
  EXPECT_EQ(sweep().queued, 1U);
  EXPECT_EQ(claim_one().job.id, id);
}

TEST_P(StoreConformance, ALostLeaseIsInDoubtOnlyIfItsOwnCallHadBegun) {
  const Uuid id = submit(a_job());
  apply(Start{lease_of(claim_one())});
  now_ += kHour;
  EXPECT_EQ(sweep().in_doubt, 1U);
  (void)claim_one();
  EXPECT_FALSE(job(id).started);
  now_ += kHour;
  EXPECT_EQ(sweep().in_doubt, 0U);
  ASSERT_EQ(job(id).errors.size(), 2U);
  EXPECT_FALSE(job(id).errors[1].in_doubt);
  EXPECT_EQ(job(id).in_doubt, 1U);
}

TEST_P(StoreConformance, ALargeBodyThatIsDroppedAndKeptAtOnceIsThere) {
  Submit large = a_job();
  large.body = std::string(5000, 'x');
  const Uuid first = submit(large);
  apply(Cancel{first});
  std::vector<Command> both;
  both.emplace_back(Remove{first});
  both.emplace_back(large);
  const std::vector<Reply> replies = apply_all(std::move(both));
  const Uuid second = take_reply<Submit>(replies.back()).id;
  EXPECT_EQ(store().body(second).value(), large.body);
}

TEST_P(StoreConformance, StatisticsTellPendingDeliveriesFromDeadOnesAndTheLatestEnding) {
  for (const char* url : {"https://a.test/", "https://b.test/", "https://c.test/"}) {
    Submit submit = a_job();
    submit.webhook = url;
    this->submit(submit);
    apply(Finish{lease_of(claim_one()), State::kCompleted, {}});
  }
  EXPECT_EQ(store().stats().value().deliveries, 3U);
  EXPECT_EQ(store().stats().value().last_ending, store().endings(0, 10).value().back().number);
  const auto due = apply(ClaimDeliveries{10, now_ + kSecond});
  ASSERT_EQ(due.size(), 3U);
  const auto settle = [this, &due](std::size_t which, SettleDelivery::To to) {
    SettleDelivery command;
    command.delivery = due[which].delivery;
    command.to = to;
    command.again_at = now_ + kSecond;
    EXPECT_TRUE(apply(command));
  };
  settle(0, SettleDelivery::To::kDelivered);
  settle(1, SettleDelivery::To::kDead);
  settle(2, SettleDelivery::To::kAgain);
  EXPECT_EQ(store().stats().value().deliveries, 1U);
  EXPECT_EQ(store().stats().value().dead_deliveries, 1U);
  for (const ClaimDeliveries::Due& each : due) apply(Remove{each.job.id});
  EXPECT_EQ(store().stats().value().deliveries, 0U) << "they go with their jobs";
  EXPECT_EQ(store().stats().value().dead_deliveries, 0U);
}

}  // namespace
}  // namespace waybill::store
