// What a program asks of the system for itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace waybill {

// Returns memory that was freed but is kept by the allocator; after work that needed much of it for a while.
// Takes some milliseconds.
void release_free_memory() noexcept;

// Returns up to `most` bytes of what tcmalloc keeps free beyond `kept`. Other threads that need more memory
// wait meanwhile. Without effect on another allocator.
void release_memory_beyond(std::size_t kept, std::size_t most) noexcept;

// From now on the C library's allocator takes blocks of a megabyte and more from the system and gives them
// back when they are freed; without effect on another one. Left alone it learns to keep blocks of up to 32
// MB, in each of its arenas. For a program that meets large blocks now and then; before its other threads are
// started.
void keep_no_large_free_blocks() noexcept;

// The calling thread, and those that it starts from now on, yield to the others of the program: work at the
// side.
void run_at_low_priority() noexcept;

// Raises the soft limit of open files and sockets to `wanted`, and the hard limit with it where this process
// may; never lowers either. Returns the limit that holds then, which may be less. setrlimit(2),
// RLIMIT_NOFILE.
std::uint64_t raise_descriptor_limit(std::uint64_t wanted) noexcept;

}  // namespace waybill
