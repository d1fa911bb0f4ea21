// Answers of Ollama's own API, as clients of OpenAI's read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "upstream/dialect.h"
#include "upstream/ndjson_reader.h"
#include "upstream/ollama/ollama_answer.h"
#include "upstream/usage_meter.h"

namespace waybill::upstream {

class OllamaReader final : public AnswerReader {
 public:
  explicit OllamaReader(const Call& call);

  void append(std::string_view bytes) override;
  std::expected<std::optional<StreamPiece>, AnswerFault> next() override;
  std::expected<StreamPiece, AnswerFault> end() override;
  std::expected<void, AnswerFault> whole(std::string& body) override;
  Usage usage() const noexcept override { return meter_.usage(); }

 private:
  [[nodiscard]] bool is_chat() const noexcept { return operation_ == Operation::kChat; }
  [[nodiscard]] std::string_view finish_reason(const OllamaAnswer& answer) const;
  void account(const OllamaAnswer& answer);

  std::expected<StreamPiece, AnswerFault> read_line(std::string_view line);
  void write_chunks(const OllamaAnswer& answer);
  void begin_chunk(const OllamaAnswer& answer);
  void end_chunk(std::string_view finish_reason);
  void write_usage_chunk(const OllamaAnswer& answer);
  void write_tool_calls(std::string_view calls, bool indexed, JsonWriter& json);

  void write_whole(const OllamaAnswer& answer, std::string& out);
  void write_choice(const OllamaAnswer& answer, JsonWriter& json);
  [[nodiscard]] bool write_embeddings(const OllamaAnswer& answer, std::string& out) const;

  const Operation operation_;
  const bool include_usage_, base64_;
  const std::uint32_t estimated_prompt_;
  const std::int64_t created_;  // seconds since 1970
  const std::string id_;        // the same in every chunk
  UsageMeter meter_;
  NdjsonReader lines_;
  std::string events_;          // of the line that was read last
  bool begun_ = false;          // the chunk with the role has been written
  std::size_t tool_calls_ = 0;  // so far
};

}  // namespace waybill::upstream
