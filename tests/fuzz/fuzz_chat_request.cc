// Bodies of calls to models, and answers: whatever is read keeps its promises, whatever is refused has a
// message.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "upstream/answer_frame.h"
#include "upstream/chat_request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill;
  using namespace waybill::upstream;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const Operation operation : {Operation::kChat, Operation::kCompletions, Operation::kEmbeddings}) {
    ChatRequest request;
    const Status status = request.parse(operation, body);
    if (!status) {
      WAYBILL_CHECK(status.error().code == ErrorCode::kInvalidInput && !status.error().message.empty());
      continue;
    }
    WAYBILL_CHECK(!request.model().empty() && request.answers() >= 1);
    std::string text;
    request.append_last_user_text(text);
    std::vector<Turn> turns;
    request.append_turns(turns);
    if (!text.empty()) WAYBILL_CHECK(!turns.empty());

    // What is sent on reads as what was meant.
    const std::string options = request.stream_options_with_usage();
    const JsonEdit edits[] = {{"model", "\"target\""}, {"stream_options", options}};
    std::string changed;
    request.members().splice(edits, changed);
    ChatRequest sent;
    WAYBILL_CHECK(sent.parse(operation, changed).has_value());
    WAYBILL_CHECK(sent.model() == "target");
    WAYBILL_CHECK(operation == Operation::kEmbeddings || sent.include_usage());
    WAYBILL_CHECK(sent.conversation() == request.conversation() && sent.stream() == request.stream());
  }

  const AnswerFrame frame = read_answer_frame(body);
  WAYBILL_CHECK(!frame.malformed || !(frame.content || frame.is_error || frame.usage || frame.done));
  WAYBILL_CHECK(frame.content == (frame.content_bytes != 0));
  if (!frame.malformed && !frame.done) {
    JsonScanner json(body);
    json.skip();
    WAYBILL_CHECK(json.at_end());
  }
  return 0;
}
