// Counts allocations, for tests that promise none. Replaces operator new for the whole test binary, so that
// exactly one of its sources may include this; not with sanitizers, which replace it themselves.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace waybill {

inline std::atomic<std::size_t> allocation_counter{0};

// By all threads since the start.
inline std::size_t allocation_count() noexcept { return allocation_counter.load(std::memory_order_relaxed); }

}  // namespace waybill

// NOLINTBEGIN: the signatures are the standard's
void* operator new(std::size_t size) {
  waybill::allocation_counter.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND
