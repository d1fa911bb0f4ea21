// Just enough HTTP/1.1 to read an answer, and just enough JSON to read what a gateway decided.
#pragma once

#include <string>
#include <string_view>

namespace burst {

struct Answer {
  enum class State { incomplete, complete, bad };
  State state = State::incomplete;
  int status = 0;
  bool keep_alive = true;
  bool chunked = false;
  std::string_view body;  // with chunk marks where chunked; points into the bytes that were parsed
};

// The first answer in `in`. at_end: the server sends nothing more.
[[nodiscard]] Answer parse_answer(std::string_view in, bool at_end);

// The body without its chunk marks.
[[nodiscard]] std::string dechunk(std::string_view in);

// The value of a member in a flat JSON object: text without quotes, or the bare word or number. Empty where
// there is none. Escapes are left as they are; names of routes and tiers have none.
[[nodiscard]] std::string_view member(std::string_view json, std::string_view name);

}  // namespace burst
