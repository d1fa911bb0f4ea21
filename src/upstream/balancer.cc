#include "upstream/balancer.h"

#include <algorithm>
#include <cmath>

#include <boost/container/small_vector.hpp>

namespace waybill::upstream {
namespace {

constexpr double kLatencyShare = 0.1;  // of the newest in the average
constexpr double kBalance = 1.25;      // "Consistent hashing with bounded loads", Mirrokni et al., 2016
constexpr std::size_t kInlineCandidates = 64;
constexpr Duration kProbeTime =
    std::chrono::seconds(1);  // after which a probe that is out may have ended well

// SplitMix64's finaliser: all bits of the input in all bits of the output.
std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

struct Candidates {
  boost::container::small_vector<const PoolMember*, kInlineCandidates> members;
  std::uint64_t weight = 0;

  [[nodiscard]] std::size_t count() const noexcept { return members.size(); }
  void add(const PoolMember& member) {
    members.push_back(&member);
    weight += member.weight;
  }
  void remove(const PoolMember* member) noexcept {
    const auto found = std::find(members.begin(), members.end(), member);
    if (found == members.end()) return;
    weight -= member->weight;
    *found = members.back();
    members.pop_back();
  }
  void clear() noexcept {
    members.clear();
    weight = 0;
  }
  [[nodiscard]] const PoolMember* draw(std::uint64_t random) const noexcept {
    if (weight == 0) return members[random % count()];
    std::uint64_t left = random % weight;
    for (const PoolMember* each : members) {
      if (left < each->weight) return each;
      left -= each->weight;
    }
    return members.front();
  }
};

// Rendezvous hashing with weights: the largest -weight / ln(hash) wins, so that a target that leaves moves
// only its own conversations.
const PoolMember* favourite(const Candidates& candidates, std::uint64_t affinity) noexcept {
  unsigned in_flight = 0;
  for (const PoolMember* each : candidates.members) in_flight += each->target->load.in_flight();
  const PoolMember* best = nullptr;
  double best_score = -1;
  for (const PoolMember* member : candidates.members) {
    const PoolMember& each = *member;
    const double share = candidates.weight == 0
                             ? 1.0 / static_cast<double>(candidates.count())
                             : static_cast<double>(each.weight) / static_cast<double>(candidates.weight);
    const double allowed = std::ceil(kBalance * share * (in_flight + 1.0));
    if (each.target->load.in_flight() + 1.0 > allowed) continue;
    const std::uint64_t hash = mix(affinity ^ mix(std::hash<std::string>{}(each.target->name)));
    const double unit = (static_cast<double>(hash >> 11U) + 0.5) * 0x1p-53;
    const double score = -std::max(1.0, static_cast<double>(each.weight)) / std::log(unit);
    if (score > best_score) {
      best_score = score;
      best = &each;
    }
  }
  return best;
}

const PoolMember* better_of_two(const Candidates& candidates, std::uint64_t random) {
  const PoolMember* one = candidates.draw(mix(random));
  if (candidates.count() == 1) return one;
  Candidates rest = candidates;
  rest.remove(one);
  const PoolMember* other = rest.draw(mix(random + 1));
  const LoadMeter& first = one->target->load;
  const LoadMeter& second = other->target->load;
  // One that has not answered yet is not taken for infinitely fast: all calls would go there until it has.
  const bool known = first.latency() != Duration::zero() && second.latency() != Duration::zero();
  const bool second_is_better = known ? second.cost() < first.cost() : second.in_flight() < first.in_flight();
  return second_is_better ? other : one;
}

}  // namespace

void LoadMeter::answered(Duration latency) noexcept {
  const Duration::rep before = latency_.load(std::memory_order_relaxed);
  const double next = before == 0 ? static_cast<double>(latency.count())
                                  : static_cast<double>(before) * (1 - kLatencyShare) +
                                        static_cast<double>(latency.count()) * kLatencyShare;
  latency_.store(std::max<Duration::rep>(1, static_cast<Duration::rep>(next)), std::memory_order_relaxed);
}

double LoadMeter::cost() const noexcept {
  return (in_flight() + 1.0) * static_cast<double>(std::max<Duration::rep>(latency().count(), 1));
}

Choice choose(std::span<const PoolMember> pool, std::span<const Target* const> tried, std::uint64_t affinity,
              std::uint64_t random, TimePoint now) {
  Choice choice;
  Candidates candidates;
  std::size_t priority = 0;
  bool spare = false;  // the candidates are of weight 0
  for (const PoolMember& member : pool) {
    if (std::ranges::find(tried, member.target.get()) != tried.end()) continue;
    if (!member.target->circuit.is_callable(now)) {
      const TimePoint when = member.target->circuit.when();
      choice.soonest = std::min(choice.soonest, when > now ? when : now + kProbeTime);
      continue;
    }
    const bool is_spare = member.weight == 0;
    const bool better = candidates.count() == 0 || member.priority < priority ||
                        (member.priority == priority && spare && !is_spare);
    if (better) {
      candidates.clear();
      priority = member.priority;
      spare = is_spare;
    } else if (member.priority != priority || is_spare != spare) {
      continue;
    }
    candidates.add(member);
  }
  while (candidates.count() > 0) {
    const PoolMember* chosen = affinity != 0 ? favourite(candidates, affinity) : nullptr;
    if (chosen == nullptr) chosen = better_of_two(candidates, random);
    choice.pass = chosen->target->circuit.allow(now);
    if (choice.pass != CircuitPass::kNo) {
      choice.target = chosen->target.get();
      return choice;
    }
    candidates.remove(chosen);  // somebody else's probe is out
    choice.soonest = std::min(choice.soonest, now + kProbeTime);
  }
  return choice;
}

}  // namespace waybill::upstream
