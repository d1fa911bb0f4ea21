// Requests of OpenAI's API for Ollama: whatever is made of one is a JSON object, whatever is refused names
// what is wrong.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "upstream/chat_request.h"
#include "upstream/ollama/ollama_request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill;
  using namespace waybill::upstream;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const Operation operation : {Operation::kChat, Operation::kCompletions, Operation::kEmbeddings}) {
    ChatRequest request;
    if (!request.parse(operation, body)) continue;
    std::string out;
    const Status written =
        write_ollama_request(operation, request, "m", {.keep_alive = "10m", .num_ctx = 2048}, out);
    if (!written) {
      WAYBILL_CHECK(!written.error().message.empty());
      continue;
    }
    JsonMembers members;
    WAYBILL_CHECK(members.parse(out).has_value());
    JsonString model;
    WAYBILL_CHECK(JsonScanner(members.find("model")->value).read(model) && model.is("m"));
  }
  return 0;
}
