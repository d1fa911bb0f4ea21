#include "api/job_filter.h"

#include <string>
#include <utility>

#include "api/job_access.h"
#include "api/query.h"

namespace waybill::api {
namespace {

constexpr std::size_t kListed = 20;
constexpr std::string_view kMetadata = "metadata.";

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
  std::string name;
  for (std::string_view rest = query; http::next_parameter(rest, name, text);) {
    if (name.starts_with(kMetadata)) filter.metadata.emplace_back(name.substr(kMetadata.size()), text);
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
