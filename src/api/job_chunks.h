// What the model of a job has said, as server-sent events with an id each, by which a listener goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/store.h"
#include "upstream/sse_reader.h"

namespace waybill::api {

// Where a listener is: so many of the events that begin at a place of the store's.
struct ChunkPlace {
  std::uint64_t from = 0;
  std::uint64_t events = 0;
};

// "17.3", as JobChunks::id() writes it.
[[nodiscard]] std::optional<ChunkPlace> parse_chunk_place(std::string_view text) noexcept;

// Takes what was stored, in pieces of any size; gives events from the one after `resumed` on. Ids of the
// model's own are left out: the last id that a client has seen is to be one of these.
class JobChunks {
 public:
  explicit JobChunks(ChunkPlace resumed) : begin_{.from = resumed.from, .events = 0}, skip_(resumed.events) {}

  // Where the store is to be read from.
  [[nodiscard]] std::uint64_t next() const noexcept { return next_.value_or(begin_.from); }
  void append(const store::Events& read, std::string& out);
  // There is no more.
  void finish(std::string& out);
  // Of the last event that was given.
  [[nodiscard]] std::string id() const;

 private:
  void give(std::string& out);

  upstream::SseReader reader_;
  ChunkPlace begin_;  // its events: given since then
  std::optional<std::uint64_t> next_;
  std::uint64_t skip_;
};

}  // namespace waybill::api
