// What a program asks of the system for itself.
#pragma once

namespace waybill {

// Returns memory that was freed but is kept by the allocator; after work that needed much of it for a while.
// Takes some milliseconds.
void release_free_memory() noexcept;

// The calling thread, and those that it starts from now on, yield to the others of the program: work at the
// side.
void run_at_low_priority() noexcept;

}  // namespace waybill
