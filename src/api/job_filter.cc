#include "api/job_filter.h"

#include <string>
#include <utility>

#include "api/job_access.h"

namespace waybill::api {
namespace {

constexpr std::size_t kListed = 20;
constexpr std::string_view kMetadata = "metadata.";

// As http::query_parameter() reads a value.
std::string decoded(std::string_view text) {
  std::string plain(text);
  for (char& c : plain) {
    if (c == '+') c = ' ';
  }
  return http::percent_decoded(plain);
}

}  // namespace

Result<store::JobFilter> read_job_filter(const Call& call) {
  const std::string_view query = call.request().query;
  store::JobFilter filter;
  std::string text;
  if (http::query_parameter(query, "status", text)) {
    filter.state = store::parse_state(text);
    if (!filter.state) {
      return fail(
          ErrorCode::kInvalidInput,
          "\"status\" must be queued, scheduled, running, held, completed, failed, cancelled, expired "
          "or dead.",
          "status");
    }
  }
  if (http::query_parameter(query, "queue", text)) {
    filter.queue = text;
  } else {
    filter.excluded_queue = jobs::kCallQueue;
  }
  if (!sees_all(call)) filter.caller = call.caller->name;
  for (std::string_view rest = query; !rest.empty();) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), pair.size() + 1));
    const std::string name = decoded(pair.substr(0, pair.find('=')));
    if (!name.starts_with(kMetadata)) continue;
    const std::size_t equals = pair.find('=');
    filter.metadata.emplace_back(name.substr(kMetadata.size()), equals == std::string_view::npos
                                                                    ? std::string()
                                                                    : decoded(pair.substr(equals + 1)));
  }
  if (http::query_parameter(query, "after", text)) {
    filter.after = parse_uuid(text);
    if (!filter.after) return fail(ErrorCode::kInvalidInput, "\"after\" must be the id of a job.", "after");
  }
  const Result<std::size_t> limit = read_limit(query, kListed);
  if (!limit) return std::unexpected(limit.error());
  filter.limit = *limit + 1;
  return filter;
}

}  // namespace waybill::api
