#include "upstream/answer_memory.h"

#include <utility>

namespace waybill::upstream {

std::size_t KeptAnswer::bytes() const noexcept {
  constexpr std::size_t kEntry = 400;  // of this, the list and the table
  return kEntry + content.size() + model.size() + target.size() + (error ? error->message.size() : 0);
}

void AnswerMemory::limit(std::size_t max_bytes) {
  const std::lock_guard lock(mutex_);
  max_bytes_ = max_bytes;
  make_room(0);
}

std::shared_ptr<const KeptAnswer> AnswerMemory::find(const Hash128& key, TimePoint now) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  if (found->second->until <= now) {
    drop(found->second);
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->answer;
}

void AnswerMemory::keep(const Hash128& key, std::shared_ptr<const KeptAnswer> answer, TimePoint until) {
  const std::size_t size = answer->bytes();
  const std::lock_guard lock(mutex_);
  if (const auto found = by_key_.find(key); found != by_key_.end()) drop(found->second);
  if (size > max_bytes_ / 4 || !make_room(size)) return;
  bytes_ += size;
  entries_.push_front({key, std::move(answer), until});
  by_key_.emplace(key, entries_.begin());
}

bool AnswerMemory::reserve(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!make_room(bytes)) return false;
  bytes_ += bytes;
  return true;
}

void AnswerMemory::release(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ -= bytes;
}

std::size_t AnswerMemory::largest() const {
  const std::lock_guard lock(mutex_);
  return max_bytes_ / 4;
}

std::size_t AnswerMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void AnswerMemory::drop(Entries::iterator entry) {
  bytes_ -= entry->answer->bytes();
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

bool AnswerMemory::make_room(std::size_t bytes) {
  while (bytes_ + bytes > max_bytes_ && !entries_.empty()) drop(std::prev(entries_.end()));
  return bytes_ + bytes <= max_bytes_;
}

}  // namespace waybill::upstream
