#include "jobs/hub.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace waybill::jobs {
namespace {

constexpr std::size_t kShards = 64;  // of watchers of one job each: they come and go on all loops

struct UuidHash {
  std::size_t operator()(const Uuid& id) const noexcept { return id.low(); }  // random bits
};

// Of watch_all. A name holds no byte 0.
std::string key_of(std::string_view queue, std::string_view caller) {
  std::string key;
  key.reserve(queue.size() + 1 + caller.size());
  return key.append(queue).append(1, '\0').append(caller);
}

}  // namespace

struct Hub::Subscription::Entry {
  http::EventLoop* loop = nullptr;
  Notify notify;
  Uuid id;                                 // of watch()
  std::unique_ptr<const std::string> key;  // of watch_all(); null: watch()
  bool alive = true;                       // the loop's thread only
};

struct Hub::Impl {
  using Entry = Subscription::Entry;
  using Entries = std::vector<std::shared_ptr<Entry>>;

  struct Shard {
    std::mutex mutex;
    std::unordered_multimap<Uuid, std::shared_ptr<Entry>, UuidHash> entries;
  };
  // What goes to one loop: who, and the place of their change in `news`.
  struct Post {
    http::EventLoop* loop = nullptr;
    std::vector<std::pair<std::shared_ptr<Entry>, std::size_t>> told;
  };

  void find(const store::Change& change, std::size_t place, std::vector<Post>& posts);
  void remove(const Entry& entry);

  Shard& shard_of(const Uuid& id) { return shards[id.low() % kShards]; }

  std::array<Shard, kShards> shards;
  std::mutex all_mutex;
  std::unordered_map<std::string, Entries> all;  // by key_of
  std::atomic<std::size_t> count{0};
};

void Hub::Impl::find(const store::Change& change, std::size_t place, std::vector<Post>& posts) {
  const auto tell = [&posts, place](const std::shared_ptr<Entry>& entry) {
    auto post = std::ranges::find(posts, entry->loop, &Post::loop);
    if (post == posts.end()) post = posts.insert(posts.end(), {entry->loop, {}});
    post->told.emplace_back(entry, place);
  };
  {
    Shard& shard = shard_of(change.id);
    const std::lock_guard lock(shard.mutex);
    const auto [first, last] = shard.entries.equal_range(change.id);
    for (auto each = first; each != last; ++each) tell(each->second);
  }
  const std::lock_guard lock(all_mutex);
  if (all.empty()) return;
  const auto look = [this, &tell](std::string_view queue, std::string_view caller) {
    const auto found = all.find(key_of(queue, caller));
    if (found != all.end()) std::ranges::for_each(found->second, tell);
  };
  look({}, {});
  if (!change.queue.empty()) look(change.queue, {});
  if (!change.caller.empty()) look({}, change.caller);
  if (!change.queue.empty() && !change.caller.empty()) look(change.queue, change.caller);
}

void Hub::Impl::remove(const Entry& entry) {
  count.fetch_sub(1, std::memory_order_relaxed);
  const auto is_it = [&entry](const std::shared_ptr<Entry>& each) { return each.get() == &entry; };
  if (entry.key == nullptr) {
    Shard& shard = shard_of(entry.id);
    const std::lock_guard lock(shard.mutex);
    const auto [first, last] = shard.entries.equal_range(entry.id);
    shard.entries.erase(std::find_if(first, last, [&is_it](const auto& each) { return is_it(each.second); }));
    return;
  }
  const std::lock_guard lock(all_mutex);
  const auto found = all.find(*entry.key);
  std::erase_if(found->second, is_it);
  if (found->second.empty()) all.erase(found);
}

Hub::Subscription::Subscription(Subscription&& other) noexcept
    : entry_(std::move(other.entry_)), hub_(std::exchange(other.hub_, nullptr)) {}

Hub::Subscription& Hub::Subscription::operator=(Subscription&& other) noexcept {
  std::swap(entry_, other.entry_);
  std::swap(hub_, other.hub_);
  return *this;
}

Hub::Subscription::~Subscription() {
  if (entry_ == nullptr) return;
  entry_->alive = false;
  hub_->impl_->remove(*entry_);
}

Hub::Hub() : impl_(std::make_unique<Impl>()) {}

Hub::~Hub() = default;

Hub::Subscription Hub::watch(const Uuid& id, http::EventLoop& loop, Notify notify) {
  Subscription subscription;
  subscription.entry_ = std::make_shared<Impl::Entry>(&loop, std::move(notify), id);
  subscription.hub_ = this;
  impl_->count.fetch_add(1, std::memory_order_relaxed);
  Impl::Shard& shard = impl_->shard_of(id);
  const std::lock_guard lock(shard.mutex);
  shard.entries.emplace(id, subscription.entry_);
  return subscription;
}

Hub::Subscription Hub::watch_all(std::string_view queue, std::string_view caller, http::EventLoop& loop,
                                 Notify notify) {
  Subscription subscription;
  subscription.entry_ = std::make_shared<Impl::Entry>(
      &loop, std::move(notify), Uuid{}, std::make_unique<const std::string>(key_of(queue, caller)));
  subscription.hub_ = this;
  impl_->count.fetch_add(1, std::memory_order_relaxed);
  const std::lock_guard lock(impl_->all_mutex);
  impl_->all[*subscription.entry_->key].push_back(subscription.entry_);
  return subscription;
}

void Hub::publish(std::span<const store::Change> changes) {
  if (subscriptions() == 0) return;
  std::vector<Impl::Post> posts;
  for (std::size_t i = 0; i < changes.size(); ++i) impl_->find(changes[i], i, posts);
  if (posts.empty()) return;
  const auto news = std::make_shared<const std::vector<store::Change>>(changes.begin(), changes.end());
  for (Impl::Post& post : posts) {
    post.loop->post([news, told = std::move(post.told)] {
      for (const auto& [entry, place] : told) {
        if (entry->alive) entry->notify((*news)[place]);
      }
    });
  }
}

std::size_t Hub::subscriptions() const { return impl_->count.load(std::memory_order_relaxed); }

}  // namespace waybill::jobs
