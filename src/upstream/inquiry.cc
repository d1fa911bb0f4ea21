#include "upstream/inquiry.h"

#include <utility>

#include <fmt/format.h>

#include "http/client_connection.h"

namespace waybill::upstream {
namespace {

constexpr std::size_t kLongestList = 8U << 20;  // of models: OpenRouter's has half a megabyte

}  // namespace

http::Task<http::ClientResult<InquiryAnswer>> inquire(const Provider& provider, std::string path,
                                                      std::size_t max_body, http::EventLoop& loop,
                                                      http::Resolver& resolver, TimePoint deadline) {
  const std::string request = provider.dialect().inquiry(provider.address({}), path);
  http::ClientConnection connection(loop, resolver, provider.origin());
  http::ClientResult<void> done = co_await connection.open(deadline);
  if (done) done = co_await connection.send(request, {}, deadline);
  if (done) done = co_await connection.read_head(deadline);
  if (!done) co_return std::unexpected(std::move(done.error()));
  InquiryAnswer answer;
  answer.status = connection.head().status;
  while (max_body > 0) {
    http::ClientResult<std::string_view> piece = co_await connection.read_body(deadline);
    if (!piece) co_return std::unexpected(std::move(piece.error()));
    if (piece->empty()) break;
    if (answer.body.size() + piece->size() > max_body) {
      co_return std::unexpected(http::ClientError{.stage = http::ClientStage::kBody,
                                                  .fault = http::ClientFault::kMalformed,
                                                  .message = "the answer is too long"});
    }
    answer.body.append(*piece);
  }
  co_return answer;
}

http::Task<Result<std::vector<std::string>>> model_names_of(const Provider& provider, http::EventLoop& loop,
                                                            http::Resolver& resolver, TimePoint deadline) {
  const std::string& name = provider.config().name;
  std::string path = provider.path_of(provider.dialect().models_path());
  http::ClientResult<InquiryAnswer> answer =
      co_await inquire(provider, std::move(path), kLongestList, loop, resolver, deadline);
  if (!answer) {
    const bool late = answer.error().fault == http::ClientFault::kTimeout;
    co_return fail(late ? ErrorCode::kUpstreamTimeout : ErrorCode::kUpstreamFailed,
                   fmt::format("{} did not tell its models: {}: {}", name, to_string(answer.error().stage),
                               answer.error().message));
  }
  std::vector<std::string> names;
  if (answer->status == 200 && provider.dialect().read_models(answer->body, names)) co_return names;
  co_return fail(ErrorCode::kUpstreamFailed,
                 fmt::format("{} did not tell its models: it answered {}{}.", name, answer->status,
                             answer->status == 200 ? " with what is no list of models" : ""));
}

}  // namespace waybill::upstream
