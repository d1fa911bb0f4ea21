// The messages of a conversation as Ollama has them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"
#include "upstream/json_members.h"

namespace waybill::upstream {

[[nodiscard]] std::unexpected<Error> ollama_lacks(std::string field, std::string_view instead);

// The value of a member that is there and not null; else null.
[[nodiscard]] const JsonMember* given(const JsonMembers& members, std::string_view name);

// Of one conversation: it remembers the tool calls, because their results are to be told by name. Not
// thread-safe.
class OllamaMessages {
 public:
  // Writes the array for `messages`, the raw array of a request. Errors as of write_ollama_request().
  Status write(std::string_view messages, JsonWriter& json);

 private:
  Status write_message(const std::string& field, JsonWriter& json);
  Status read_content(const std::string& field);
  Status read_part(const std::string& field, std::string_view raw);
  Status read_image(const std::string& field, const JsonMember& image);
  void add_text(const JsonString& text);
  Status write_tool_calls(const std::string& field, std::string_view calls, JsonWriter& json);
  void write_tool_result(JsonWriter& json);

  JsonMembers message_;                                     // the one that is being written,
  std::string text_;                                        // its text, as JSON without the quotes,
  std::vector<std::string> images_;                         // and its pictures, in base64
  std::vector<std::pair<std::string, std::string>> calls_;  // id and name of the tool calls so far
};

}  // namespace waybill::upstream
