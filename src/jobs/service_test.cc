#include "jobs/service_test.h"

#include <algorithm>

#include <gmock/gmock.h>

namespace waybill::jobs {
namespace {

using namespace std::chrono_literals;
using store::State;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(ServiceTest, RunsWhatIsSubmittedAndKeepsItsAnswer) {
  open_and_start();
  std::vector<Uuid> ids;
  for (int i = 0; i < 20; ++i) ids.push_back(submit("begin 200"));
  for (const Uuid& id : ids) ASSERT_TRUE(becomes(id, State::kCompleted));
  const store::Job done = job(ids[3]);
  EXPECT_EQ(done.receives, 1U);
  EXPECT_EQ(done.in_doubt, 0U);
  EXPECT_THAT(done.errors, IsEmpty());
  const auto result = store_->result(ids[3]);
  ASSERT_TRUE(result && *result);
  EXPECT_EQ((*result)->status, 200U);
  EXPECT_EQ((*result)->body, "{\"said\":200}");
  EXPECT_EQ((*result)->content_type, "application/json");
  EXPECT_EQ((*result)->facts, "{\"model\":\"m\"}");
  EXPECT_TRUE(eventually([&] { return metric("waybill_jobs_submitted_total{queue=\"q\"}") == 20; }));
  EXPECT_TRUE(eventually(
      [&] { return metric("waybill_jobs_finished_total{queue=\"q\",state=\"completed\"}") == 20; }));
  EXPECT_TRUE(eventually([&] { return metric("waybill_job_receives_total{queue=\"q\"}") == 20; }));
  EXPECT_TRUE(eventually([&] { return metric("waybill_job_run_seconds_count{queue=\"q\"}") == 20; }));
  EXPECT_TRUE(eventually([&] { return metric("waybill_store_writable") == 1; }));
  // Sweeps that find nothing are no transactions.
  const double commits = metric("waybill_store_commit_seconds_count");
  EXPECT_GE(commits, 3);
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(metric("waybill_store_commit_seconds_count"), commits);
  EXPECT_EQ(metric("waybill_in_doubt_total{queue=\"q\"}"), -1);
}

TEST_F(ServiceTest, FindsWhatWasThereBefore) {
  open();
  const Uuid id = submit("200");
  close();
  open_and_start();
  EXPECT_TRUE(becomes(id, State::kCompleted));
}

TEST_F(ServiceTest, NeverRunsMoreThanTheConcurrencyOfAQueue) {
  queue_.concurrency = 3;
  open_and_start();
  std::vector<Uuid> ids;
  for (int i = 0; i < 12; ++i) ids.push_back(submit("hold 200"));
  ASSERT_TRUE(eventually([&] { return performer_.running() == 3; }));
  for (const Uuid& id : ids) performer_.let_go(id);
  for (const Uuid& id : ids) ASSERT_TRUE(becomes(id, State::kCompleted));
  EXPECT_EQ(performer_.most_at_a_time(), 3U);
}

TEST_F(ServiceTest, TakesThePriorityFirstAndThenTheOldest) {
  queue_.concurrency = 1;
  open();
  ASSERT_TRUE(commit(store::Pause{.queue = "q", .paused = true}));
  const Uuid first = submit("200"), second = submit("200");
  const Uuid urgent = submit("200", [](store::Submit& submit) { submit.priority = 5; });
  start();
  std::this_thread::sleep_for(50ms);
  EXPECT_THAT(performer_.seen(), IsEmpty());  // paused
  ASSERT_TRUE(commit(store::Pause{.queue = "q", .paused = false}));
  ASSERT_TRUE(becomes(second, State::kCompleted));
  EXPECT_THAT(performer_.seen(), ElementsAre(Field(&ScriptedPerformer::Seen::id, urgent),
                                             Field(&ScriptedPerformer::Seen::id, first),
                                             Field(&ScriptedPerformer::Seen::id, second)));
}

TEST_F(ServiceTest, TriesAgainAndThenGivesUp) {
  open_and_start();
  const Uuid id = submit("begin 500");
  ASSERT_TRUE(becomes(id, State::kDead));
  const store::Job dead = job(id);
  EXPECT_EQ(dead.receives, 3U);
  ASSERT_THAT(dead.errors, SizeIs(3));
  EXPECT_THAT(dead.errors, Each(Field(&store::AttemptError::code, "http_500")));
  EXPECT_EQ(dead.errors[2].receive, 3U);
  EXPECT_EQ(dead.in_doubt, 0U);
  EXPECT_THAT(performer_.seen(), SizeIs(3));
  EXPECT_TRUE(eventually(
      [&] { return metric("waybill_job_attempts_failed_total{queue=\"q\",code=\"http_500\"}") == 3; }));
  EXPECT_TRUE(
      eventually([&] { return metric("waybill_jobs_finished_total{queue=\"q\",state=\"dead\"}") == 1; }));
}

TEST_F(ServiceTest, WhatCannotBecomeBetterFailsWithItsAnswer) {
  open_and_start();
  const Uuid id = submit("begin 400");
  ASSERT_TRUE(becomes(id, State::kFailed));
  const auto result = store_->result(id);
  ASSERT_TRUE(result && *result);
  EXPECT_EQ((*result)->status, 400U);
  EXPECT_THAT(performer_.seen(), SizeIs(1));
}

TEST_F(ServiceTest, WaitsAsLongAsTheAnswerAsks) {
  performer_.retry_after = 1h;
  open_and_start();
  std::promise<store::Time> due;
  std::optional<Hub::Subscription> subscription;
  on_loop([&] {
    subscription.emplace(service_->hub().watch_all("q", "", *loops_[0], [&](const store::Change& change) {
      if (change.state == State::kScheduled) due.set_value(change.run_after);
    }));
  });
  const Uuid id = submit("begin 429");
  const store::Time at = due.get_future().get();
  on_loop([&] { subscription.reset(); });
  const store::Job waiting = job(id);
  EXPECT_EQ(waiting.state, State::kScheduled);
  EXPECT_EQ(waiting.receives, 1U);
  ASSERT_THAT(waiting.errors, SizeIs(1));
  EXPECT_EQ(at - waiting.errors[0].ended, 3'600'000'000);
}

TEST_F(ServiceTest, AnAttemptThatCalledNobodyDoesNotCount) {
  performer_.retry_after = 1h;
  open_and_start();
  const Uuid id = submit("503");
  ASSERT_TRUE(eventually([&] { return job(id).state == State::kScheduled; }));
  EXPECT_EQ(job(id).receives, 0U);
  EXPECT_THAT(job(id).errors, IsEmpty());
}

TEST_F(ServiceTest, AnExceptionIsAnAttempt) {
  open_and_start();
  const Uuid id = submit("begin throw");
  ASSERT_TRUE(becomes(id, State::kDead));
  EXPECT_THAT(job(id).errors, Each(Field(&store::AttemptError::code, "internal_error")));
}

TEST_F(ServiceTest, CancelsWhatRuns) {
  queue_.visibility = 1h;  // not by the next renewal
  open_and_start();
  const Uuid id = submit("begin hold 200");
  ASSERT_TRUE(eventually([&] { return job(id).started; }));
  ASSERT_TRUE(commit(store::Cancel{id}));
  ASSERT_TRUE(eventually([&] { return performer_.running() == 0; }));
  EXPECT_TRUE(performer_.seen()[0].cancelled);
  EXPECT_EQ(job(id).state, State::kCancelled);
  EXPECT_FALSE(*store_->result(id));
  // Its place is free again.
  EXPECT_TRUE(becomes(submit("200"), State::kCompleted));
}

TEST_F(ServiceTest, AnAnswerThatComesAfterTheLeaseWasLostDoesNotCount) {
  queue_.concurrency = 2;
  queue_.visibility = 1s;
  open_and_start();
  const Uuid id = submit("begin linger 200");
  ASSERT_TRUE(eventually([&] { return job(id).started; }));
  ASSERT_TRUE(commit(store::Cancel{id}));
  ASSERT_TRUE(commit(store::Retry{id}));
  ASSERT_TRUE(eventually([&] { return performer_.running() == 2; }));
  std::this_thread::sleep_for(1200ms);  // that the first lease is lost is found at each renewal too
  // The first of the two: it has heard that it is cancelled, and answers all the same.
  performer_.let_go(id);
  ASSERT_TRUE(eventually([&] { return performer_.running() == 1; }));
  EXPECT_TRUE(performer_.seen()[0].cancelled);
  EXPECT_EQ(job(id).state, State::kRunning);
  performer_.let_go(id);
  EXPECT_TRUE(becomes(id, State::kCompleted));
  EXPECT_FALSE(performer_.seen()[1].cancelled);
}

TEST_F(ServiceTest, NothingIsCalledForAJobThatWasTakenBackBefore) {
  open_and_start();
  const Uuid id = submit("linger begin 200");
  ASSERT_TRUE(eventually([&] { return performer_.running() == 1; }));
  ASSERT_TRUE(commit(store::Cancel{id}));
  performer_.let_go(id);
  ASSERT_TRUE(eventually([&] { return performer_.running() == 0; }));
  EXPECT_TRUE(performer_.seen()[0].refused);
}

TEST_F(ServiceTest, RenewsTheLeasesOfWhatTakesLong) {
  queue_.visibility = 1s;
  open_and_start();
  const Uuid id = submit("begin hold 200");
  ASSERT_TRUE(eventually([&] { return performer_.running() == 1; }));
  std::this_thread::sleep_for(2500ms);
  EXPECT_EQ(job(id).state, State::kRunning);
  performer_.let_go(id);
  ASSERT_TRUE(becomes(id, State::kCompleted));
  EXPECT_EQ(job(id).receives, 1U);
  EXPECT_THAT(performer_.seen(), SizeIs(1));
}

TEST_F(ServiceTest, WritesEventsInTheirOrderAndBeforeTheEnd) {
  open_and_start();
  const Uuid id = submit("begin events data: 1\n\ndata: 2\n\n");
  ASSERT_TRUE(becomes(id, State::kCompleted));
  const auto events = store_->events(id, 0, 1000);
  ASSERT_TRUE(events);
  EXPECT_EQ(events->text, "data: 1\n\ndata: 2\n\n");
}

TEST_F(ServiceTest, KeepsAnswersWhileTheStoreCannotBeWritten) {
  queue_.concurrency = 1;
  open_and_start();
  const Uuid first = submit("begin hold 200"), second = submit("begin 200");
  ASSERT_TRUE(eventually([&] { return job(first).started; }));
  store_->broken = true;
  performer_.let_go(first);
  ASSERT_TRUE(eventually([&] { return metric("waybill_jobs_unsettled") == 1; }));
  EXPECT_FALSE(service_->is_writable());
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(job(first).state, State::kRunning);
  EXPECT_THAT(performer_.seen(), SizeIs(1));  // nothing more is begun
  store_->broken = false;
  ASSERT_TRUE(becomes(first, State::kCompleted));
  ASSERT_TRUE(becomes(second, State::kCompleted));
  EXPECT_EQ(job(first).receives, 1U);
  EXPECT_TRUE(service_->is_writable());
  EXPECT_TRUE(eventually([&] { return metric("waybill_jobs_unsettled") == 0; }));
}

TEST_F(ServiceTest, AnAnswerOutlivesItsLeaseWhileTheStoreCannotBeWritten) {
  queue_.visibility = 1s;
  open_and_start();
  const Uuid id = submit("begin hold 200");
  ASSERT_TRUE(eventually([&] { return job(id).started; }));
  store_->broken = true;
  performer_.let_go(id);
  std::this_thread::sleep_for(1500ms);  // the lease has run out, on the disk
  store_->broken = false;
  ASSERT_TRUE(becomes(id, State::kCompleted));
  EXPECT_EQ(job(id).receives, 1U);
  EXPECT_THAT(performer_.seen(), SizeIs(1));
}

TEST_F(ServiceTest, EventsThatCouldNotBeWrittenComeBeforeThoseSaidMeanwhile) {
  open_and_start();
  const Uuid id = submit("begin hold say a say b hold 200");
  ASSERT_TRUE(eventually([&] { return job(id).started; }));
  store_->broken = true;
  performer_.let_go(id);  // "b" is said while "a" is being written
  ASSERT_TRUE(eventually([&] { return !service_->is_writable(); }));
  store_->broken = false;
  performer_.let_go(id);
  ASSERT_TRUE(becomes(id, State::kCompleted));
  EXPECT_EQ(store_->events(id, 0, 1000).value().text, "ab");
}

TEST_F(ServiceTest, AfterEventsThatWereTooManyNoneIsKeptThatWouldNotFit) {
  open_and_start();
  const Uuid id = submit("begin say " + std::string(5U << 20, 'x') + " say b 200");
  ASSERT_TRUE(becomes(id, State::kCompleted));
  EXPECT_EQ(store_->events(id, 0, 1000).value().text, "");
}

TEST_F(ServiceTest, TimeGoesOnWhenARenewalFailedAndNothingIsLeftToRenew) {
  queue_.visibility = 1s;
  open_and_start();
  const Uuid id = submit("begin linger 200");
  ASSERT_TRUE(eventually([&] { return job(id).started; }));
  store_->refuses_renewals = true;
  ASSERT_TRUE(eventually([&] { return store_->refused_renewals > 0; }));
  performer_.let_go(id);
  ASSERT_TRUE(eventually([&] { return performer_.running() == 0; }));
  store_->refuses_renewals = false;
  ASSERT_TRUE(becomes(id, State::kCompleted));
  const Uuid later = submit("200", [](store::Submit& submit) { submit.run_after = store_now() + 300'000; });
  EXPECT_TRUE(becomes(later, State::kCompleted));
}

TEST_F(ServiceTest, DrainsWhatRunsAndTakesNothingMore) {
  queue_.concurrency = 1;
  open_and_start();
  const Uuid running = submit("begin hold 200"), waiting = submit("begin 200");
  ASSERT_TRUE(eventually([&] { return performer_.running() == 1; }));
  service_->stop_claiming();
  EXPECT_FALSE(service_->is_idle());
  performer_.let_go(running);
  EXPECT_TRUE(service_->drain(std::chrono::steady_clock::now() + 30s));
  EXPECT_EQ(job(running).state, State::kCompleted);
  EXPECT_EQ(job(waiting).state, State::kQueued);
}

TEST_F(ServiceTest, GivesBackWhatDoesNotEndInTime) {
  open_and_start();
  const Uuid begun = submit("begin hold 200"), not_begun = submit("hold begin 200");
  ASSERT_TRUE(eventually([&] { return performer_.running() == 2 && job(begun).started; }));
  EXPECT_TRUE(service_->drain(std::chrono::steady_clock::now()));
  EXPECT_EQ(performer_.running(), 0U);
  const store::Job again = job(begun);
  EXPECT_THAT(again.state, testing::AnyOf(State::kQueued, State::kScheduled));
  EXPECT_EQ(again.receives, 1U);
  ASSERT_THAT(again.errors, SizeIs(1));
  EXPECT_EQ(again.errors[0].code, "shutting_down");
  EXPECT_TRUE(again.errors[0].in_doubt);
  EXPECT_EQ(job(not_begun).state, State::kQueued);
  EXPECT_EQ(job(not_begun).receives, 0U);
}

TEST_F(ServiceTest, AJobWhoseCallHadBegunWhenTheProcessEndedIsInDoubtAndTriedAgain) {
  open_and_start();
  const Uuid id = submit("begin linger 200");
  ASSERT_TRUE(eventually([&] { return performer_.running() == 1 && job(id).started; }));
  close();
  open_and_start();
  ASSERT_TRUE(eventually([&] { return performer_.running() == 2; }));
  performer_.let_go(id);
  performer_.let_go(id);
  ASSERT_TRUE(becomes(id, State::kCompleted));
  const store::Job done = job(id);
  EXPECT_EQ(done.receives, 2U);
  EXPECT_EQ(done.in_doubt, 1U);
  ASSERT_THAT(done.errors, SizeIs(1));
  EXPECT_EQ(done.errors[0].code, "lease_expired");
  EXPECT_TRUE(done.errors[0].in_doubt);
  EXPECT_TRUE(eventually([&] { return metric("waybill_in_doubt_total{queue=\"q\"}") == 1; }));
  EXPECT_TRUE(eventually([&] { return metric("waybill_lease_expired_total{queue=\"q\"}") == 1; }));
}

TEST_F(ServiceTest, OrHeldWhereItsQueueSaysSo) {
  queue_.in_doubt = config::InDoubt::kHold;
  open_and_start();
  const Uuid begun = submit("begin hold 200"), not_begun = submit("hold 200");
  ASSERT_TRUE(eventually([&] { return performer_.running() == 2 && job(begun).started; }));
  EXPECT_TRUE(service_->drain(std::chrono::steady_clock::now()));
  close();
  open_and_start();
  ASSERT_TRUE(becomes(begun, State::kHeld));
  performer_.let_go(not_begun);
  ASSERT_TRUE(becomes(not_begun, State::kCompleted));
  EXPECT_EQ(job(begun).in_doubt, 1U);
  // A person decides that it may be tried again.
  ASSERT_TRUE(commit(store::Retry{begun}));
  performer_.let_go(begun);
  EXPECT_TRUE(becomes(begun, State::kCompleted));
}

TEST_F(ServiceTest, TakesAnotherConfigurationWhileItRuns) {
  queue_.concurrency = 1;
  open_and_start();
  const Uuid first = submit("hold 200"), second = submit("hold 200");
  const Uuid elsewhere = submit("hold 200", [](store::Submit& submit) { submit.queue = "other"; });
  ASSERT_TRUE(eventually([&] { return performer_.running() == 1; }));
  config::Jobs jobs;
  queue_.concurrency = 2;
  jobs.queues = {queue_, queue_};
  jobs.queues[1].name = "other";
  service_->configure(jobs);
  ASSERT_TRUE(eventually([&] { return performer_.running() == 3; }));
  ASSERT_NE(service_->queue("other"), nullptr);
  EXPECT_EQ(service_->queue("other")->concurrency, 2U);
  EXPECT_EQ(service_->queue("none"), nullptr);
  EXPECT_THAT(service_->queues(), SizeIs(2));
  // Without a queue there is nothing to run, and what runs goes on.
  jobs.queues.pop_back();
  service_->configure(jobs);
  for (const Uuid& id : {first, second, elsewhere}) performer_.let_go(id);
  for (const Uuid& id : {first, second, elsewhere}) EXPECT_TRUE(becomes(id, State::kCompleted));
  const Uuid late = submit("200", [](store::Submit& submit) { submit.queue = "other"; });
  EXPECT_TRUE(becomes(submit("200"), State::kCompleted));
  EXPECT_EQ(job(late).state, State::kQueued);
}

TEST_F(ServiceTest, LeavesTheJobsOfExternalWorkersAlone) {
  jobs_.queues.push_back(queue_);
  jobs_.queues[0].name = "elsewhere";
  jobs_.queues[0].workers = config::QueueWorkers::kExternal;
  open_and_start();
  const Uuid id = submit("200", [](store::Submit& submit) { submit.queue = "elsewhere"; });
  ASSERT_TRUE(becomes(submit("200"), State::kCompleted));
  EXPECT_EQ(job(id).state, State::kQueued);
}

TEST_F(ServiceTest, WhatWasForWorkersElsewhereIsADeadLetterAtOnce) {
  open_and_start();
  const Uuid id = submit("200", [](store::Submit& submit) {
    submit.endpoint = store::kExternalEndpoint;
    submit.max_receives = 5;
  });
  ASSERT_TRUE(becomes(id, State::kDead));
  const store::Job dead = job(id);
  ASSERT_THAT(dead.errors, SizeIs(1));
  EXPECT_EQ(dead.errors[0].code, "queue_changed");
  EXPECT_FALSE(dead.errors[0].in_doubt);
  ASSERT_TRUE(becomes(submit("200"), State::kCompleted));
  EXPECT_THAT(performer_.seen(), SizeIs(1));
}

TEST_F(ServiceTest, ReadsOnOtherThreadsAndTellsWhatIsNew) {
  open_and_start();
  const Uuid id = submit("hold 200");
  std::promise<std::vector<std::string>> told;
  std::vector<std::string> states;
  std::optional<Hub::Subscription> subscription;
  on_loop([&] {
    subscription.emplace(service_->hub().watch(id, *loops_[0], [&](const store::Change& change) {
      states.emplace_back(store::to_string(change.state));
      if (store::is_terminal(change.state)) told.set_value(states);
    }));
  });
  performer_.let_go(id);
  EXPECT_EQ(told.get_future().get().back(), "completed");
  on_loop([&] { subscription.reset(); });
}

}  // namespace
}  // namespace waybill::jobs
