// Independent pieces of work spread over a few threads, for work at start (fitting, distilling), not for
// requests.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace waybill {

// Calls work(i) for every i < count, on up to `threads` threads (0: one per core), this one among them. Which
// thread takes which i is left to chance, so a result that is to be the same every time must not depend on
// it. `work` must not throw.
template <class Work>
void parallel_for(std::size_t count, unsigned threads, const Work& work) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) work(i);
  };
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < std::min<std::size_t>(threads, count); ++t) others.emplace_back(run);
  run();
}

}  // namespace waybill
