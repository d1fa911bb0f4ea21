#include "api/job_chunks.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace waybill::api {
namespace {

bool is_id(std::string_view line) noexcept {
  constexpr std::string_view kField = "id";
  return line.starts_with(kField) && (line.size() == kField.size() || line[kField.size()] == ':');
}

// The lines of an event, each with its end, but for its ids.
void append_without_ids(std::string_view raw, std::string& out) {
  while (!raw.empty()) {
    const std::size_t end = std::min(raw.find_first_of("\r\n"), raw.size());
    const std::size_t after = end + (raw.substr(end).starts_with("\r\n") ? 2 : end == raw.size() ? 0 : 1);
    if (!is_id(raw.substr(0, end))) out.append(raw.substr(0, after));
    raw.remove_prefix(after);
  }
}

}  // namespace

std::optional<ChunkPlace> parse_chunk_place(std::string_view text) noexcept {
  ChunkPlace place;
  const char* end = text.data() + text.size();
  const auto from = std::from_chars(text.data(), end, place.from);
  if (from.ec != std::errc() || from.ptr == end || *from.ptr != '.') return std::nullopt;
  const auto events = std::from_chars(from.ptr + 1, end, place.events);
  if (events.ec != std::errc() || events.ptr != end) return std::nullopt;
  return place;
}

void JobChunks::append(const store::Events& read, std::string& out) {
  reader_.append(read.text);
  next_ = read.next;
  give(out);
  if (reader_.rest().empty()) begin_ = {.from = read.next, .events = 0};
}

void JobChunks::finish(std::string& out) {
  reader_.finish();
  give(out);
}

void JobChunks::give(std::string& out) {
  while (const auto event = reader_.next()) {
    if (!event->has_data) continue;
    ++begin_.events;
    if (skip_ > 0) {
      --skip_;
      continue;
    }
    // An `event` line of its own comes after this one, and counts.
    fmt::format_to(std::back_inserter(out), "id: {}\nevent: chunk\n", id());
    append_without_ids(event->raw, out);
  }
}

std::string JobChunks::id() const { return fmt::format("{}.{}", begin_.from, begin_.events); }

}  // namespace waybill::api
