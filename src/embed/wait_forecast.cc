#include "embed/wait_forecast.h"

#include <algorithm>
#include <cmath>

namespace waybill::embed {
namespace {

// What a batch of the waiting items will hold on average.
double batch_tokens(const QueueState& queue, double waiting_tokens, std::size_t idle_threads) {
  const double budget = static_cast<double>(queue.max_batch_tokens);
  if (idle_threads != 0) {  // they share what waits
    return std::clamp(std::ceil(waiting_tokens / static_cast<double>(idle_threads)), 1.0, budget);
  }
  // Whole items only: about half an item's worth stays unused.
  const double mean_item = waiting_tokens / static_cast<double>(queue.items + 1);
  return std::max(budget - mean_item / 2, budget / 2);
}

// When the thread that takes batch number `ahead` (from 0) becomes free, if every batch before it takes
// `seconds`.
double start_of_batch(std::span<const double> free_in, double ahead, double seconds) {
  // How many threads will take part: one that is free only after the others have done all the work does not.
  std::size_t threads = 1;
  double sum = free_in[0];
  while (threads < free_in.size() &&
         (sum + ahead * seconds) / static_cast<double>(threads) > free_in[threads]) {
    sum += free_in[threads++];
  }
  const double rounds = std::floor(ahead / static_cast<double>(threads));
  const auto thread = static_cast<std::size_t>(ahead - rounds * static_cast<double>(threads));
  return free_in[std::min(thread, threads - 1)] + rounds * seconds;
}

}  // namespace

double remaining_seconds(const BatchCost& cost, std::size_t tokens, double elapsed) {
  return std::max(cost.seconds(static_cast<double>(tokens)) - elapsed, elapsed / 8);
}

double forecast_seconds(const BatchCost& cost, const QueueState& queue, std::size_t tokens,
                        std::span<double> free_in) {
  std::ranges::sort(free_in);
  const auto idle = static_cast<std::size_t>(std::ranges::upper_bound(free_in, 0.0) - free_in.begin());
  const double own = static_cast<double>(tokens);
  const double waiting = static_cast<double>(queue.tokens) + own;
  const double batch = batch_tokens(queue, waiting, idle);
  const double ahead = own >= batch ? std::ceil((waiting - own) / batch) : std::ceil(waiting / batch) - 1;
  const double start = start_of_batch(free_in, ahead, cost.seconds(batch));
  double last = std::max(own, waiting - ahead * batch);
  // A batch that starts later takes along who comes until then: reckon with one of the size of late.
  if (start > 0) last = std::max(last, std::min(batch, cost.mean_tokens()));
  return start + cost.seconds(last);
}

}  // namespace waybill::embed
