// Work on a few threads, for what runs now and then: loading, distilling, embedding many texts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace waybill::embed {

// How many threads to use when `asked` (0: one per core) are allowed and there are so many pieces of work.
[[nodiscard]] inline unsigned threads_for(unsigned asked, std::size_t pieces_of_work) {
  const unsigned threads = asked != 0 ? asked : std::max(1U, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::clamp<std::size_t>(pieces_of_work, 1, threads));
}

// Runs work(i) for i = 0 .. threads - 1, the last on the calling thread; returns when all are done.
inline void run_on_threads(unsigned threads, const std::function<void(unsigned)>& work) {
  std::vector<std::jthread> helpers;
  for (unsigned i = 0; i + 1 < threads; ++i) helpers.emplace_back([&work, i] { work(i); });
  work(threads - 1);
}

}  // namespace waybill::embed
