// The suite of all back ends, second part: what people do to jobs, what time brings, and what is read.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "store/store_conformance_test.h"

namespace waybill::store {
namespace {

Sweep a_sweep(std::int64_t kept) { return {{{"q", kept, 2 * kept, 3 * kept}}, {}, 1000}; }

TEST_P(StoreConformance, CancelTakesBackWhatHasNotEnded) {
  const Uuid running = submit(a_job());
  const Claim::Leased leased = claim_one();
  Submit later = a_job();
  later.run_after = now_ + kHour;
  const Uuid scheduled = submit(later), queued = submit(a_job());
  for (const auto& [id, before] :
       {std::pair(running, State::kRunning), {scheduled, State::kScheduled}, {queued, State::kQueued}}) {
    const Cancel::Reply reply = apply(Cancel{id});
    EXPECT_TRUE(reply.found);
    EXPECT_EQ(reply.before, before);
    EXPECT_EQ(reply.after, State::kCancelled);
    ASSERT_EQ(changes_.size(), 1U);
    EXPECT_EQ(changes_[0].state, State::kCancelled);
    EXPECT_EQ(state(id), State::kCancelled);
  }
  EXPECT_EQ(apply(Finish{lease_of(leased), State::kCompleted, an_answer()}), Held::kStale);
  const Cancel::Reply again = apply(Cancel{queued});
  EXPECT_EQ(again.before, State::kCancelled);
  EXPECT_TRUE(changes_.empty());
  EXPECT_TRUE(claim(10).empty());
  now_ += 2 * kHour;
  EXPECT_EQ(sweep().queued, 0U);
  EXPECT_EQ(store().endings(0, 10).value().size(), 3U);
}

TEST_P(StoreConformance, ACompletedJobIsNotCancelled) {
  const Uuid id = submit(a_job());
  apply(Finish{lease_of(claim_one()), State::kCompleted, an_answer()});
  const Cancel::Reply reply = apply(Cancel{id});
  EXPECT_EQ(reply.before, State::kCompleted);
  EXPECT_EQ(reply.after, State::kCompleted);
}

TEST_P(StoreConformance, RetryQueuesWhatDidNotComplete) {
  Submit submit = a_job();
  submit.max_receives = 1;
  submit.expires = now_ + kHour;
  const Uuid dead = this->submit(submit), failed = this->submit(submit), done = this->submit(submit);
  apply(Fail{lease_of(claim_one()), {0, kNever, kNever, "timeout", "late", 0, true}, kNever});
  apply(Finish{lease_of(claim_one()), State::kFailed, an_answer("no")});
  apply(Finish{lease_of(claim_one()), State::kCompleted, an_answer("yes")});
  const Uuid expired = this->submit(submit);
  now_ += 2 * kHour;
  EXPECT_EQ(sweep().expired, 1U);
  for (const auto& [id, before] :
       {std::pair(dead, State::kDead), {failed, State::kFailed}, {expired, State::kExpired}}) {
    const Retry::Reply reply = apply(Retry{id});
    EXPECT_TRUE(reply.found);
    EXPECT_EQ(reply.before, before);
    EXPECT_EQ(reply.after, State::kQueued);
    const Job again = job(id);
    EXPECT_EQ(again.state, State::kQueued);
    EXPECT_EQ(again.receives, 0U);
    EXPECT_EQ(again.result, 0U);
    EXPECT_EQ(again.finished, kNever);
    EXPECT_EQ(again.expires, kNever);  // it has passed
    EXPECT_EQ(store().result(id).value(), std::nullopt);
  }
  EXPECT_EQ(job(dead).errors.size(), 1U);
  EXPECT_EQ(apply(Retry{done}).after, State::kCompleted);
  EXPECT_EQ(apply(Retry{dead}).after, State::kQueued);
  EXPECT_TRUE(changes_.empty());
  EXPECT_EQ(store().result(done).value()->body, "yes");
  EXPECT_EQ(store().endings(0, 10).value().size(), 1U);
  const auto leased = claim(10);
  EXPECT_EQ(leased.size(), 3U);
  apply(Fail{lease_of(leased[0]), {}, kNever});
  EXPECT_EQ(job(dead).errors.size(), 2U);
  EXPECT_GT(job(dead).result, job(done).result);
  expect_depths_to_be_a_recount();
}

TEST_P(StoreConformance, RedriveQueuesDeadLettersTheOldestFirst) {
  std::vector<Uuid> dead;
  for (int i = 0; i < 6; ++i) {
    Submit submit = a_job(i < 4 ? "q" : "other", i % 2 == 0 ? "even" : "odd");
    submit.max_receives = 1;
    dead.push_back(this->submit(submit));
    apply(Fail{lease_of(claim_one(submit.queue)),
               {0, kNever, kNever, i == 0 ? "refused" : "timeout", "", 0, false},
               kNever});
  }
  Redrive redrive;
  redrive.dry_run = true;
  EXPECT_EQ(apply(redrive), dead);
  EXPECT_EQ(state(dead[0]), State::kDead);
  redrive.queue = "q";
  redrive.error_code = "timeout";
  EXPECT_EQ(apply(redrive), (std::vector<Uuid>{dead[1], dead[2], dead[3]}));
  redrive.dry_run = false;
  redrive.max = 2;
  EXPECT_EQ(apply(redrive), (std::vector<Uuid>{dead[1], dead[2]}));
  EXPECT_EQ(changes_.size(), 2U);
  EXPECT_EQ(state(dead[1]), State::kQueued);
  EXPECT_EQ(state(dead[3]), State::kDead);
  redrive = {};
  redrive.caller = "even";
  EXPECT_EQ(apply(redrive), (std::vector<Uuid>{dead[0], dead[4]}));
  redrive.caller = "nobody";
  EXPECT_TRUE(apply(redrive).empty());
  expect_depths_to_be_a_recount();
}

TEST_P(StoreConformance, OnlyWhatHasEndedIsRemoved) {
  const Uuid id = submit(a_job());
  EXPECT_EQ(apply(Remove{id}).before, State::kQueued);
  EXPECT_EQ(state(id), State::kQueued);
  const Claim::Leased leased = claim_one();
  apply(Append{lease_of(leased), "data: 1\n\n"});
  apply(Finish{lease_of(leased), State::kCompleted, an_answer()});
  EXPECT_TRUE(apply(Remove{id}).found);
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_TRUE(changes_[0].removed);
  EXPECT_EQ(store().find(id).value(), std::nullopt);
  EXPECT_EQ(store().result(id).value(), std::nullopt);
  EXPECT_EQ(store().events(id, 0, 100).value().text, "");
  EXPECT_TRUE(store().endings(0, 10).value().empty());
  EXPECT_FALSE(apply(Remove{id}).found);
  const StoreStats stats = store().stats().value();
  EXPECT_EQ(stats.jobs, 0U);
  EXPECT_EQ(stats.results, 0U);
}

TEST_P(StoreConformance, AKeyWhoseJobWasRemovedIsFree) {
  Submit submit = a_job();
  submit.key = a_key(1, 1);
  const Uuid id = this->submit(submit);
  apply(Cancel{id});
  apply(Remove{id});
  EXPECT_NE(this->submit(submit), id);
  EXPECT_EQ(apply(submit).how, Submit::How::kExisting);
  EXPECT_EQ(store().stats().value().keys, 1U);
}

TEST_P(StoreConformance, NothingIsClaimedOfAPausedQueue) {
  submit(a_job());
  EXPECT_FALSE(apply(Pause{"q", true}));
  EXPECT_TRUE(apply(Pause{"q", true}));
  EXPECT_TRUE(claim().empty());
  reopen();
  EXPECT_TRUE(claim().empty());
  const auto queues = store().queues().value();
  ASSERT_EQ(queues.size(), 1U);
  EXPECT_TRUE(queues[0].paused);
  submit(a_job());  // is taken all the same
  EXPECT_TRUE(apply(Pause{"q", false}));
  EXPECT_FALSE(apply(Pause{"q", false}));
  EXPECT_EQ(claim(10).size(), 2U);
}

TEST_P(StoreConformance, ScheduledJobsAreQueuedWhenTheirTimeHasCome) {
  Submit submit = a_job();
  submit.run_after = now_ + kSecond;
  const Uuid id = this->submit(submit);
  EXPECT_EQ(changes_[0].run_after, now_ + kSecond);
  EXPECT_EQ(state(id), State::kScheduled);
  EXPECT_EQ(job(id).run_after, now_ + kSecond);
  EXPECT_TRUE(claim().empty());
  EXPECT_EQ(sweep().queued, 0U);
  now_ += kSecond;
  EXPECT_EQ(sweep().queued, 1U);
  EXPECT_EQ(changes_.size(), 1U);
  EXPECT_EQ(claim_one().job.id, id);
}

TEST_P(StoreConformance, ALeaseThatRunsOutIsAnAttemptThatFailed) {
  Submit submit = a_job();
  submit.max_receives = 2;
  const Uuid id = this->submit(submit);
  const Claim::Leased first = claim_one();
  now_ += 59 * kSecond;
  EXPECT_EQ(sweep().lease_expired, 0U);
  apply(Renew{{lease_of(first)}, now_ + 60 * kSecond});
  now_ += 59 * kSecond;
  EXPECT_EQ(sweep().lease_expired, 0U);
  now_ += kSecond;
  Sweep::Reply swept = sweep();
  EXPECT_EQ(swept.lease_expired, 1U);
  EXPECT_EQ(swept.in_doubt, 0U);
  EXPECT_EQ(state(id), State::kQueued);
  EXPECT_EQ(apply(Finish{lease_of(first), State::kCompleted, an_answer()}), Held::kStale);
  const Claim::Leased second = claim_one();
  apply(Start{lease_of(second)});
  now_ += 60 * kSecond;
  swept = sweep();
  EXPECT_EQ(swept.in_doubt, 1U);
  EXPECT_EQ(swept.dead, 1U);
  const Job dead = job(id);
  EXPECT_EQ(dead.state, State::kDead);
  EXPECT_EQ(dead.in_doubt, 1U);
  ASSERT_EQ(dead.errors.size(), 2U);
  EXPECT_EQ(dead.errors[0].code, "lease_expired");
  EXPECT_FALSE(dead.errors[0].in_doubt);
  EXPECT_TRUE(dead.errors[1].in_doubt);
  EXPECT_FALSE(dead.errors[1].message.empty());
}

TEST_P(StoreConformance, AJobInDoubtIsHeldWhereAPersonIsToDecide) {
  const Uuid doubtful = submit(a_job()), harmless = submit(a_job());
  const auto leased = claim(2);
  apply(Start{lease_of(leased[0])});
  now_ += kHour;
  const Sweep::Reply swept = apply(Sweep{{}, {"q"}, 1000});
  EXPECT_EQ(swept.lease_expired, 2U);
  EXPECT_EQ(swept.in_doubt, 1U);
  EXPECT_EQ(state(doubtful), State::kHeld);
  EXPECT_EQ(state(harmless), State::kQueued);
  EXPECT_EQ(claim(10).size(), 1U);
  EXPECT_EQ(apply(Retry{doubtful}).after, State::kQueued);
  EXPECT_EQ(claim_one().job.id, doubtful);
}

TEST_P(StoreConformance, OwnLeasesAreVoidWhenTheStoreIsOpenedAgain) {
  const Uuid called = submit(a_job()), uncalled = submit(a_job()), elsewhere = submit(a_job());
  const auto own = claim(2);
  Claim external;
  external.queue = "q";
  external.until = now_ + kHour;
  external.own = false;
  const auto other = apply(external);
  ASSERT_EQ(other.size(), 1U);
  apply(Start{lease_of(own[0])});
  reopen();
  EXPECT_EQ(state(called), State::kRunning);
  EXPECT_EQ(apply(Finish{lease_of(own[0]), State::kCompleted, an_answer()}), Held::kStale);
  EXPECT_EQ(apply(Finish{lease_of(other[0]), State::kCompleted, an_answer()}), Held::kDone);
  Sweep::Reply swept = apply(Sweep{{}, {}, 1});
  EXPECT_EQ(swept.lease_expired, 1U);
  EXPECT_TRUE(swept.more);
  swept = sweep();
  EXPECT_EQ(swept.lease_expired, 1U);
  EXPECT_EQ(job(called).in_doubt, 1U);
  EXPECT_EQ(job(uncalled).in_doubt, 0U);
  EXPECT_EQ(state(called), State::kQueued);
  EXPECT_EQ(state(elsewhere), State::kCompleted);
  EXPECT_EQ(claim(10).size(), 2U);
  EXPECT_EQ(sweep().lease_expired, 0U);
}

TEST_P(StoreConformance, WhatIsNotDoneInTimeExpires) {
  Submit submit = a_job();
  submit.expires = now_ + kSecond;
  const Uuid running = this->submit(submit);
  const Claim::Leased leased = claim_one();
  const Uuid queued = this->submit(submit);
  submit.run_after = now_ + kHour;
  const Uuid scheduled = this->submit(submit);
  EXPECT_EQ(sweep().expired, 0U);
  apply(Renew{{lease_of(leased)}, now_ + kHour});
  now_ += kSecond;
  EXPECT_TRUE(claim(1).empty());  // also before the sweep
  EXPECT_EQ(state(queued), State::kExpired);
  EXPECT_EQ(sweep().expired, 2U);
  EXPECT_EQ(state(running), State::kExpired);
  EXPECT_EQ(state(scheduled), State::kExpired);
  EXPECT_EQ(apply(Finish{lease_of(leased), State::kCompleted, an_answer()}), Held::kStale);
  expect_depths_to_be_a_recount();
}

TEST_P(StoreConformance, WhatHasEndedIsRemovedWhenItWasKeptLongEnough) {
  const Uuid done = submit(a_job()), failed = submit(a_job()), cancelled = submit(a_job());
  Submit fatal = a_job();
  fatal.max_receives = 1;
  const Uuid dead = submit(fatal), elsewhere = submit(a_job("other"));
  const auto leased = claim(4);
  apply(Finish{lease_of(leased[0]), State::kCompleted, an_answer()});
  apply(Finish{lease_of(leased[1]), State::kFailed, an_answer()});
  apply(Cancel{cancelled});
  apply(Fail{lease_of(leased[3]), {}, kNever});
  apply(Finish{lease_of(claim_one("other")), State::kCompleted, an_answer()});
  const auto left = [this] {
    std::set<Uuid> ids;
    for (const Job& job : store().list({}).value()) ids.insert(job.id);
    return ids;
  };
  now_ += kHour - 1;
  EXPECT_EQ(apply(a_sweep(kHour)).removed, 0U);
  now_ += 1;
  EXPECT_EQ(apply(a_sweep(kHour)).removed, 1U);
  EXPECT_EQ(left(), (std::set<Uuid>{failed, cancelled, dead, elsewhere}));
  now_ += kHour;
  EXPECT_EQ(apply(a_sweep(kHour)).removed, 2U);
  EXPECT_EQ(left(), (std::set<Uuid>{dead, elsewhere}));
  now_ += kHour;
  EXPECT_EQ(apply(a_sweep(kHour)).removed, 1U);
  now_ += 100 * kHour;
  EXPECT_EQ(apply(a_sweep(kHour)).removed, 0U);
  EXPECT_EQ(left(), (std::set<Uuid>{elsewhere}));  // nobody has said how long
  EXPECT_EQ(store().find(done).value(), std::nullopt);
  // Other lengths hold for what has been looked at before.
  EXPECT_EQ(apply(Sweep{{{"other", kHour, 0, 0}}, {}, 1000}).removed, 1U);
  EXPECT_EQ(store().stats().value().jobs, 0U);
}

TEST_P(StoreConformance, ASweepDoesNoMoreThanItIsAllowed) {
  Submit submit = a_job();
  submit.run_after = now_ + kSecond;
  for (int i = 0; i < 5; ++i) this->submit(submit);
  now_ += kSecond;
  std::vector<std::size_t> queued;
  bool more = true;
  while (more) {
    const Sweep::Reply reply = apply(Sweep{{}, {}, 2});
    queued.push_back(reply.queued);
    more = reply.more;
  }
  EXPECT_EQ(queued, (std::vector<std::size_t>{2, 2, 1}));
}

TEST_P(StoreConformance, EventsAreReadAsTheyWereAppended) {
  const Uuid id = submit(a_job());
  EXPECT_EQ(store().events(id, 0, 100).value().text, "");
  const Lease lease = lease_of(claim_one());
  apply(Append{lease, "one "});
  ASSERT_EQ(changes_.size(), 1U);
  EXPECT_TRUE(changes_[0].events);
  apply(Append{lease, "two "});
  apply(Append{lease, "three"});
  Events events = store().events(id, 0, 100).value();
  EXPECT_EQ(events.text, "one two three");
  EXPECT_EQ(events.next, 13U);
  EXPECT_EQ(store().events(id, 13, 100).value().text, "");
  EXPECT_EQ(store().events(id, 13, 100).value().next, 13U);
  events = store().events(id, 4, 5).value();  // a piece is not cut at its end
  EXPECT_EQ(events.text, "two ");
  EXPECT_EQ(store().events(id, events.next, 1).value().text, "three");
  EXPECT_EQ(store().events(id, 6, 100).value().text, "o three");
  apply(Finish{lease, State::kCompleted, an_answer()});
  reopen();
  EXPECT_EQ(store().events(id, 0, 100).value().text, "one two three");
}

TEST_P(StoreConformance, AWebhookIsToldOfTheEnd) {
  Submit submit = a_job();
  submit.webhook = "https://example.com/hook";
  const Uuid id = this->submit(submit);
  this->submit(a_job("other"));
  EXPECT_TRUE(apply(ClaimDeliveries{10, now_ + kSecond}).empty());
  apply(Finish{lease_of(claim_one()), State::kCompleted, an_answer()});
  const auto due = apply(ClaimDeliveries{10, now_ + kSecond});
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].attempts, 0U);
  EXPECT_EQ(due[0].created, now_);
  EXPECT_EQ(due[0].url, "https://example.com/hook");
  EXPECT_EQ(due[0].job.id, id);
  EXPECT_EQ(due[0].job.state, State::kCompleted);
  EXPECT_TRUE(apply(ClaimDeliveries{10, now_ + kSecond}).empty());
  now_ += kSecond;  // whoever claimed it said nothing
  const auto again = apply(ClaimDeliveries{10, now_ + kSecond});
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].delivery, due[0].delivery);
  SettleDelivery settle;
  settle.delivery = due[0].delivery;
  settle.to = SettleDelivery::To::kAgain;
  settle.again_at = now_ + kHour;
  settle.status = 500;
  settle.error = "it failed";
  EXPECT_TRUE(apply(settle));
  EXPECT_TRUE(apply(ClaimDeliveries{10, now_ + kSecond}).empty());
  auto records = store().deliveries(id, false, 10).value();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].state, "pending");
  EXPECT_EQ(records[0].attempts, 1U);
  EXPECT_EQ(records[0].due, now_ + kHour);
  EXPECT_EQ(records[0].status, 500U);
  EXPECT_EQ(records[0].error, "it failed");
  EXPECT_EQ(records[0].url, "https://example.com/hook");
  now_ += kHour;
  ASSERT_EQ(apply(ClaimDeliveries{10, now_ + kSecond}).size(), 1U);
  settle.to = SettleDelivery::To::kDelivered;
  settle.status = 204;
  EXPECT_TRUE(apply(settle));
  EXPECT_EQ(store().deliveries(id, false, 10).value()[0].state, "delivered");
  EXPECT_TRUE(store().deliveries(std::nullopt, true, 10).value().empty());
  settle.to = SettleDelivery::To::kDead;  // what was settled stays settled
  EXPECT_TRUE(apply(settle));
  EXPECT_EQ(store().deliveries(id, false, 10).value()[0].state, "delivered");
  settle.delivery = 999;
  EXPECT_FALSE(apply(settle));
  apply(Remove{id});
  EXPECT_TRUE(store().deliveries(std::nullopt, false, 10).value().empty());
}

TEST_P(StoreConformance, AnAddressThatWantsNoMoreGetsNoMore) {
  Submit submit = a_job();
  submit.webhook = "https://example.com/gone";
  std::vector<Uuid> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(this->submit(submit));
  apply(Cancel{ids[0]});
  apply(Cancel{ids[1]});
  const auto due = apply(ClaimDeliveries{1, now_ + kSecond});
  ASSERT_EQ(due.size(), 1U);
  SettleDelivery settle;
  settle.delivery = due[0].delivery;
  settle.to = SettleDelivery::To::kDead;
  settle.status = 410;
  settle.disable_url = due[0].url;
  EXPECT_TRUE(apply(settle));
  reopen();
  apply(Cancel{ids[2]});
  now_ += kHour;
  EXPECT_TRUE(apply(ClaimDeliveries{10, now_ + kSecond}).empty());
  EXPECT_EQ(store().deliveries(std::nullopt, true, 10).value().size(), 3U);
  EXPECT_EQ(store().deliveries(std::nullopt, true, 2).value().size(), 2U);
  // One that is sent once more enables it again.
  EXPECT_TRUE(apply(Resend{ids[1]}));
  const auto again = apply(ClaimDeliveries{10, now_ + kSecond});
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].job.id, ids[1]);
  EXPECT_EQ(again[0].attempts, 0U);
  const Uuid next = this->submit(submit);
  apply(Cancel{next});
  EXPECT_EQ(apply(ClaimDeliveries{10, now_ + kSecond}).size(), 1U);
  EXPECT_FALSE(apply(Resend{this->submit(a_job())}));
  reopen();
  apply(Cancel{this->submit(submit)});
  EXPECT_EQ(apply(ClaimDeliveries{10, now_ + kSecond}).size(), 1U) << "for good";
}

TEST_P(StoreConformance, AJobThatEndsTwiceIsToldTwice) {
  Submit submit = a_job();
  submit.webhook = "https://example.com/hook";
  const Uuid id = this->submit(submit);
  apply(Cancel{id});
  apply(Retry{id});
  apply(Cancel{id});
  EXPECT_EQ(apply(ClaimDeliveries{10, now_ + kSecond}).size(), 2U);
}

TEST_P(StoreConformance, QueuesTellTheirOldest) {
  Submit submit = a_job("q", "a");
  submit.priority = 3;
  const Time first = now_;
  this->submit(submit);
  now_ += kSecond;
  submit.priority = 9;
  submit.caller = "b";
  this->submit(submit);
  this->submit(a_job("other"));
  apply(Pause{"third"});
  auto queues = store().queues().value();
  std::ranges::sort(queues, {}, &QueueState::name);
  ASSERT_EQ(queues.size(), 3U);
  EXPECT_EQ(queues[0].name, "other");
  EXPECT_EQ(queues[0].oldest, now_);
  EXPECT_EQ(queues[1].name, "q");
  EXPECT_EQ(queues[1].oldest, first);
  EXPECT_FALSE(queues[1].paused);
  EXPECT_EQ(queues[2].name, "third");
  EXPECT_EQ(queues[2].oldest, kNever);
  EXPECT_TRUE(queues[2].paused);
}

TEST_P(StoreConformance, CommandsOfATransactionFollowEachOther) {
  Submit submit = a_job();
  submit.key = a_key(1, 1);
  Claim claim;
  claim.queue = "q";
  claim.until = now_ + kSecond;
  Submit other = a_job();
  other.key = a_key(1, 2);
  std::vector<Reply> replies = apply_all({submit, claim, submit, other, claim});
  const Uuid id = take_reply<Submit>(replies[0]).id;
  const auto leased = take_reply<Claim>(std::move(replies[1]));
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].job.id, id);
  EXPECT_EQ(take_reply<Submit>(replies[2]).state, State::kRunning);
  EXPECT_EQ(take_reply<Submit>(replies[3]).how, Submit::How::kKeyReused);
  EXPECT_TRUE(take_reply<Claim>(std::move(replies[4])).empty());
  EXPECT_EQ(changes_.size(), 2U);
}

TEST_P(StoreConformance, LargeBodiesAndResultsComeBackWhole) {
  const std::string large(100'000, 'x'), other(5'000, 'y');
  Submit submit = a_job();
  submit.body = large;
  const Uuid a = this->submit(submit), b = this->submit(submit);
  EXPECT_EQ(store().body(a).value(), large);
  const auto leased = claim(2);
  ASSERT_EQ(leased.size(), 2U);
  EXPECT_EQ(leased[1].body, large);
  apply(Finish{lease_of(leased[0]), State::kCompleted, an_answer(other)});
  apply(Finish{lease_of(leased[1]), State::kFailed, an_answer(large)});
  EXPECT_EQ(store().result(a).value()->body, other);
  EXPECT_EQ(store().result(b).value()->body, large);
  apply(Remove{a});
  EXPECT_EQ(store().body(b).value(), large);
  reopen();
  EXPECT_EQ(store().body(b).value(), large);
  apply(Retry{b});
  EXPECT_EQ(store().body(b).value(), large);
  apply(Cancel{b});
  apply(Remove{b});
  const StoreStats stats = store().stats().value();
  EXPECT_EQ(stats.blobs, 0U);
  EXPECT_EQ(stats.blob_bytes, 0U);
}

TEST_P(StoreConformance, RemembersFactsByTheirNames) {
  using Facts = std::vector<std::pair<std::string, std::string>>;
  EXPECT_TRUE(apply(Remember{"spent/b", "1"}));
  EXPECT_TRUE(apply(Remember{"spent/a", "2"}));
  EXPECT_TRUE(apply(Remember{"spending", "3"}));
  EXPECT_TRUE(apply(Remember{"spent/b", "4"}));
  EXPECT_FALSE(apply(Remember{"spent/b", "4"}));
  reopen();
  EXPECT_EQ(store().remembered("spent/").value(), (Facts{{"spent/a", "2"}, {"spent/b", "4"}}));
  EXPECT_EQ(store().remembered("none").value(), Facts{});
}

TEST_P(StoreConformance, EverythingIsThereWhenItIsOpenedAgain) {
  Submit submit = a_job();
  submit.key = a_key(1, 1);
  submit.metadata = R"({"a": "b"})";
  const Uuid done = this->submit(submit), queued = this->submit(a_job("q", "other"));
  apply(Finish{lease_of(claim_one()), State::kCompleted, an_answer("kept")});
  const std::uint64_t number = job(done).result;
  reopen();
  EXPECT_EQ(state(done), State::kCompleted);
  EXPECT_EQ(job(done).metadata, R"({"a": "b"})");
  EXPECT_EQ(store().result(done).value()->body, "kept");
  EXPECT_EQ(apply(submit).id, done);
  EXPECT_EQ(claim_one().job.id, queued);
  apply(Cancel{queued});
  EXPECT_EQ(job(queued).result, number + 1);
  apply(Remove{queued});
  reopen();
  const Uuid next = this->submit(a_job());
  apply(Cancel{next});
  EXPECT_EQ(job(next).result, number + 2);  // numbers of endings are not given twice
  expect_depths_to_be_a_recount();
}

}  // namespace
}  // namespace waybill::store
