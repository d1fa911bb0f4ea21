// Which model a conversation has, so that it does not bounce between models from turn to turn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"

namespace waybill::api {

struct ConversationModel {
  std::string route, model;
};

// By a hash of the conversation. Bounded: what was used least lately goes first. Thread-safe.
class Conversations {
 public:
  explicit Conversations(std::size_t most = 50'000) : most_per_shard_(most / kShards) {}

  [[nodiscard]] std::optional<ConversationModel> find(std::uint64_t conversation, TimePoint now);
  void keep(std::uint64_t conversation, const ConversationModel& model, TimePoint until);

 private:
  static constexpr std::size_t kShards = 8;
  struct Entry {
    std::uint64_t conversation;
    ConversationModel model;
    TimePoint until;
  };
  struct Shard {
    std::mutex mutex;          // guards the next two
    std::list<Entry> entries;  // used latest first
    std::unordered_map<std::uint64_t, std::list<Entry>::iterator> by_conversation;
  };
  Shard& shard(std::uint64_t conversation) noexcept { return shards_[conversation % kShards]; }

  const std::size_t most_per_shard_;
  std::array<Shard, kShards> shards_;
};

}  // namespace waybill::api
