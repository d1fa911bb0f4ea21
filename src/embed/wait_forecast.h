// How long a newcomer to the batcher's queue will wait for its answer. Internal to the batcher.
#pragma once

#include <cstddef>
#include <span>

#include "embed/batch_cost.h"

namespace waybill::embed {

struct QueueState {
  std::size_t tokens = 0, items = 0;  // waiting
  std::size_t max_batch_tokens = 0;
};

// The time until a batch that started `elapsed` seconds ago ends. One that is overdue is expected to take an
// eighth more of what it took, so that a thread which hangs is seen to hang.
[[nodiscard]] double remaining_seconds(const BatchCost& cost, std::size_t tokens, double elapsed);

// Seconds until the answer to an item of `tokens` that joins the queue now: first in, first out, the batches
// ahead of it go each to the thread that is free first. `free_in`: for each thread, in how many seconds it
// will be free (0: idle); sorted by this function.
[[nodiscard]] double forecast_seconds(const BatchCost& cost, const QueueState& queue, std::size_t tokens,
                                      std::span<double> free_in);

}  // namespace waybill::embed
