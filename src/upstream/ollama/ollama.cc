#include "upstream/ollama/ollama.h"

#include <utility>

#include <fmt/format.h>

#include "upstream/answer_frame.h"
#include "upstream/error_body.h"
#include "upstream/model_names.h"
#include "upstream/ollama/ollama_reader.h"
#include "upstream/request_head.h"

namespace waybill::upstream {
namespace {

std::string_view ollama_path(Operation operation) noexcept {
  switch (operation) {
    case Operation::kChat:
      return "/api/chat";
    case Operation::kCompletions:
      return "/api/generate";
    case Operation::kEmbeddings:
      return "/api/embed";
  }
  return {};
}

class OllamaDialect final : public Dialect {
 public:
  explicit OllamaDialect(OllamaSettings settings) : settings_(std::move(settings)) {}

  Status prepare(const Call& call, const TargetAddress& target, WireRequest& request) const override {
    const std::string_view model = target.model.empty() ? call.model : target.model;
    if (Status written = write_ollama_request(call.operation, call.request, model, settings_, request.body);
        !written)
      return written;
    begin_head(call, target, ollama_path(call.operation), request.head);
    if (!target.key.empty()) add_header("Authorization", fmt::format("Bearer {}", target.key), request.head);
    end_head(request.body.size(), request.head);
    return {};
  }

  std::unique_ptr<AnswerReader> reader(const Call& call) const override {
    return std::make_unique<OllamaReader>(call);
  }

  std::string refusal(unsigned status, std::string_view body, std::string& message) const override {
    const AnswerFrame frame = read_answer(body);
    if (!frame.malformed && frame.is_error) frame.error.message.append_to(message);
    if (message.empty()) message = "the provider gave no reason";
    return error_body(status, message);
  }

  std::string_view health_path() const noexcept override { return "/api/version"; }
  std::string_view models_path() const noexcept override { return "/api/tags"; }
  bool read_models(std::string_view body, std::vector<std::string>& names) const override {
    return append_names(body, "models", "name", names);
  }

 private:
  const OllamaSettings settings_;
};

}  // namespace

std::unique_ptr<const Dialect> make_ollama_dialect(OllamaSettings settings) {
  return std::make_unique<OllamaDialect>(std::move(settings));
}

}  // namespace waybill::upstream
