// Answers that are kept for those who ask the same again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "base/hash.h"
#include "base/result.h"

namespace waybill::upstream {

// An answer as its client had it, in OpenAI's format. Immutable once it is kept.
struct KeptAnswer {
  Hash128 payload;             // of what was asked
  bool began = false;          // content is the events of a stream; else a body
  unsigned status = 200;       // of a body
  std::string content;         // all of it
  std::optional<Error> error;  // it is what a call that failed came to
  std::string model, target;   // who answered

  [[nodiscard]] std::size_t bytes() const noexcept;  // of memory, about
};

// By key, within a bound: what was asked for least lately goes first. Room may also be reserved for answers
// that are still being received. Thread-safe; a short lock.
class AnswerMemory {
 public:
  // For all answers together; 0, as at first: none is kept.
  void limit(std::size_t max_bytes);

  // Null: there is none, or its time has passed.
  [[nodiscard]] std::shared_ptr<const KeptAnswer> find(const Hash128& key, TimePoint now);
  // Replaces what the key had. One that is larger than largest() is dropped.
  void keep(const Hash128& key, std::shared_ptr<const KeptAnswer> answer, TimePoint until);

  // Room that counts as used until it is released; kept answers give way to it. False: there is not enough.
  [[nodiscard]] bool reserve(std::size_t bytes);
  void release(std::size_t bytes);

  // A quarter of all, so that one answer does not push out all others.
  [[nodiscard]] std::size_t largest() const;
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Entry {
    Hash128 key;
    std::shared_ptr<const KeptAnswer> answer;  // shared with those who are sending it
    TimePoint until;
  };
  struct HashOf {
    std::size_t operator()(const Hash128& key) const noexcept { return key.low; }
  };
  using Entries = std::list<Entry>;

  // With the lock held:
  void drop(Entries::iterator entry);
  bool make_room(std::size_t bytes);

  mutable std::mutex mutex_;  // guards all that follows
  std::size_t max_bytes_ = 0, bytes_ = 0;
  Entries entries_;  // used latest first
  std::unordered_map<Hash128, Entries::iterator, HashOf> by_key_;
};

}  // namespace waybill::upstream
