// What differs between the wire formats of providers. docs/providers/README.md says how to add one.
//
//             OpenAI-compatible   Ollama            Anthropic          Azure             Bedrock
//   path      /chat/completions   /api/chat         /messages          /deployments/M/.. /model/M/invoke
//   key       Authorization       -                 x-api-key          api-key           a signature of all
//   of it model     in the body         in the body       in the body        in the path       in the path
//   body      as it is            translated        translated         as it is          translated
//   stream    SSE                 NDJSON            SSE, named events  SSE               binary frames
//   usage     last frame, if asked  last line       first and last     last frame        a header, or last
//   limits    x-ratelimit-*       -                 anthropic-ratelimit-*  x-ratelimit-* -
//
// A dialect therefore makes a whole request (so that it may sign it), and reads a whole answer or stream; it
// has no state beyond one answer, and does no I/O.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/response_parser.h"
#include "upstream/call.h"

namespace waybill::upstream {

// What a request needs besides the call itself.
struct TargetAddress {
  std::string_view host;     // for the Host header
  std::string_view prefix;   // before the path: of base_url, and of a proxy
  std::string_view key;      // empty: none
  std::string_view headers;  // of the configuration, "name: value\r\n" each
  std::string_view model;    // as the provider calls it
};

struct WireRequest {
  std::string head;  // request line and headers, with the empty line
  std::string body;
};

// What one step of reading a stream gave. The views are valid until the next step.
struct StreamPiece {
  std::string_view events;  // for the client, in OpenAI's format; may be empty
  bool content = false;     // part of the answer itself is among them: the first of it ends all fallback
  bool done = false;        // the stream is complete
};

// Why an answer is none.
struct AnswerFault {
  enum class Kind : std::uint8_t { kMalformed, kEmpty, kError, kCut } kind = Kind::kMalformed;
  unsigned status = 0;  // kError: what the error says of itself, as a status of HTTP; 0: nothing
  std::string message;
};

// Reads one answer, whole or as a stream.
class AnswerReader {
 public:
  virtual ~AnswerReader() = default;

  // A stream: bytes come in, pieces go out until there are none, and once the body has ended, end().
  virtual void append(std::string_view bytes) = 0;
  [[nodiscard]] virtual std::expected<std::optional<StreamPiece>, AnswerFault> next() = 0;
  // The body has ended, well-formed as HTTP. kCut where the answer had not.
  [[nodiscard]] virtual std::expected<StreamPiece, AnswerFault> end() = 0;

  // A whole answer, in place, to OpenAI's format.
  [[nodiscard]] virtual std::expected<void, AnswerFault> whole(std::string& body) = 0;

  // As far as it was told; the tokens seen so far where it was not.
  [[nodiscard]] virtual Usage usage() const noexcept = 0;
};

class Dialect {
 public:
  virtual ~Dialect() = default;
  // kUnsupported: the provider has nothing like it.
  [[nodiscard]] virtual Status prepare(const Call& call, const TargetAddress& target,
                                       WireRequest& request) const = 0;
  [[nodiscard]] virtual std::unique_ptr<AnswerReader> reader(const Call& call) const = 0;
  // The error of a refusal (a status from 400 on), in OpenAI's format; and its message.
  [[nodiscard]] virtual std::string refusal(unsigned status, std::string_view body,
                                            std::string& message) const = 0;
  // A question that is no call: a GET of `path`, which stands as it is.
  [[nodiscard]] virtual std::string inquiry(const TargetAddress& target, std::string_view path) const;
  // Where to ask whether it is well, below base_url.
  [[nodiscard]] virtual std::string_view health_path() const noexcept = 0;
  // Where to ask for its models, likewise; and their names, appended from what it answers. False: it is no
  // such list.
  [[nodiscard]] virtual std::string_view models_path() const noexcept = 0;
  [[nodiscard]] virtual bool read_models(std::string_view body, std::vector<std::string>& names) const = 0;
};

}  // namespace waybill::upstream
