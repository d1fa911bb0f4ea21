// What each command does to the tables. One object, on the one connection that writes, for the life of the
// store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "store/command.h"
#include "store/sqlite/blobs.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/counters.h"
#include "store/sqlite/delivery_rows.h"
#include "store/sqlite/depths.h"
#include "store/sqlite/job_ids.h"
#include "store/sqlite/job_rows.h"
#include "store/sqlite/key_table.h"
#include "store/sqlite/names.h"

namespace waybill::store::sqlite {

// Within a transaction that somebody else begins and ends. After a failure of the connection what is returned
// means nothing, and rolled_back() is to be called. Not thread-safe.
class Commands {
 public:
  struct Options {
    std::size_t inline_bytes = 0;  // what is larger is a file
    std::size_t recent_keys = 0;   // RecentKeys' capacity
  };
  Commands(Connection& connection, const BlobFiles& files, const Options& options);

  // What is kept in memory, from the file. Leases of earlier openings are void.
  void load();
  // Numbers this opening; once, in a transaction.
  void begin_epoch() { epoch_ = counters_.add(Counter::kEpoch, 1); }

  [[nodiscard]] Reply apply(const Command& command, Time now);
  // Writes something, so that the transaction is not empty.
  void mark() { counters_.add(Counter::kMark, 1); }

  // The last step before a transaction is committed, and the first after that.
  void flush();
  [[nodiscard]] bool drops_files() const noexcept { return blobs_.drops_files(); }  // in committed()
  [[nodiscard]] std::vector<Change> committed();
  void rolled_back();

  std::size_t collect_blobs() { return blobs_.collect(); }

 private:
  // submit.cc
  [[nodiscard]] Submit::Reply run(const Submit& submit);
  [[nodiscard]] std::optional<Submit::Reply> existing(const IdempotencyKey& key,
                                                      const std::optional<KeyTable::Entry>& entry);
  [[nodiscard]] std::optional<Submit::Reply> claim(const IdempotencyKey& key, std::int64_t job);

  // leases.cc
  [[nodiscard]] Claim::Reply run(const Claim& claim);
  [[nodiscard]] Start::Reply run(const Start& start);
  [[nodiscard]] Renew::Reply run(const Renew& renew);
  [[nodiscard]] Finish::Reply run(const Finish& finish);
  [[nodiscard]] Fail::Reply run(const Fail& fail);
  [[nodiscard]] Release::Reply run(const Release& release);
  [[nodiscard]] Append::Reply run(const Append& append);
  struct Ready {
    JobRow row;
    Job job;
    std::string body;
    bool lost = false;  // the body was a file that is gone
  };
  [[nodiscard]] std::vector<Ready> ready(std::int64_t queue, const Depths::Turn& turn);
  void lease(JobRow& row, Time until, bool own);
  struct Held {
    std::optional<JobRow> row;  // where the lease is valid
    store::Held held = store::Held::kDone;
  };
  [[nodiscard]] Held held(const Lease& lease);

  // control.cc
  [[nodiscard]] Cancel::Reply run(const Cancel& cancel);
  [[nodiscard]] Retry::Reply run(const Retry& retry);
  [[nodiscard]] Redrive::Reply run(const Redrive& redrive);
  [[nodiscard]] Remove::Reply run(const Remove& remove);
  [[nodiscard]] Pause::Reply run(const Pause& pause);
  [[nodiscard]] ClaimDeliveries::Reply run(const ClaimDeliveries& claim);
  [[nodiscard]] SettleDelivery::Reply run(const SettleDelivery& settle);
  [[nodiscard]] Resend::Reply run(const Resend& resend);
  [[nodiscard]] Remember::Reply run(const Remember& remember);

  // sweep.cc
  [[nodiscard]] Sweep::Reply run(const Sweep& sweep);
  void sweep_lost(const Sweep& sweep, Sweep::Reply& reply, std::size_t& left);
  void sweep_due(const Sweep& sweep, Sweep::Reply& reply, std::size_t& left);
  void sweep_retention(const Sweep& sweep, Sweep::Reply& reply, std::size_t& left);
  void lose_lease(JobRow& row, const Sweep& sweep, Sweep::Reply& reply);
  void find_lost_leases();
  void give_back_space();

  // commands.cc: what they have in common.
  void move(JobRow& row, State to, Time own_time);
  void end(JobRow& row, State to, const JobResult* result);
  void forget_ending(JobRow& row);
  void requeue(JobRow& row);
  void remove(const JobRow& row);
  void add_error(JobRow& row, const AttemptError& error);
  void changed(const JobRow& row);
  [[nodiscard]] bool is_valid(const JobRow& row, const Lease& lease) const noexcept;

  Connection& connection_;
  const BlobFiles& files_;
  Names names_;
  Counters counters_;
  Depths depths_;
  JobRows rows_;
  KeyTable keys_;
  DeliveryRows deliveries_;
  Blobs blobs_;
  JobIds ids_;

  Statement max_key_, paused_rows_, insert_paused_, remove_paused_;
  Statement insert_request_, request_blob_, webhook_, remove_request_;
  Statement ready_, job_;
  Statement insert_ending_, remove_ending_, insert_result_, result_blob_, remove_result_;
  Statement last_error_, insert_error_, remove_errors_;
  Statement last_event_, insert_event_, remove_events_;
  Statement due_, dead_, fact_, replace_fact_, endings_;

  std::int64_t epoch_ = 0;
  std::set<std::int64_t> paused_;   // queues
  std::vector<std::int64_t> lost_;  // leased by an earlier opening, not swept yet
  // Sweep: what each length of retention has seen of the endings, and what was asked for then.
  std::map<std::int64_t, std::int64_t> retention_seen_;
  std::map<std::pair<std::int64_t, State>, std::int64_t> retention_;

  // Of the command that is applied.
  Time now_ = kNever;
  std::vector<Change> changes_;
};

}  // namespace waybill::store::sqlite
