#include "api/conversations.h"

namespace waybill::api {

std::optional<ConversationModel> Conversations::find(std::uint64_t conversation, TimePoint now) {
  Shard& shard = this->shard(conversation);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.by_conversation.find(conversation);
  if (found == shard.by_conversation.end()) return std::nullopt;
  if (found->second->until <= now) {
    shard.entries.erase(found->second);
    shard.by_conversation.erase(found);
    return std::nullopt;
  }
  return found->second->model;
}

void Conversations::keep(std::uint64_t conversation, const ConversationModel& model, TimePoint until) {
  Shard& shard = this->shard(conversation);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.by_conversation.find(conversation);
  if (found != shard.by_conversation.end()) {
    found->second->model = model;
    found->second->until = until;
    shard.entries.splice(shard.entries.begin(), shard.entries, found->second);
    return;
  }
  if (shard.entries.size() >= most_per_shard_) {
    shard.by_conversation.erase(shard.entries.back().conversation);
    shard.entries.pop_back();
  }
  shard.entries.push_front({conversation, model, until});
  shard.by_conversation.emplace(conversation, shard.entries.begin());
}

}  // namespace waybill::api
