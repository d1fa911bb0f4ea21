#include "api/job_reader.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/job_body.h"
#include "api/job_fields.h"
#include "api/json_body.h"
#include "api/request_hash.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "jobs/webhook_address.h"
#include "upstream/json_scanner.h"

namespace waybill::api {
namespace {

using upstream::JsonScanner;
using upstream::JsonString;

constexpr std::int64_t kMostPriority = 9, kMostReceives = 100;
constexpr double kLongestWait = 366.0 * 86'400;  // seconds
constexpr std::size_t kMostName = 256, kMostUrl = 2048;
constexpr std::string_view kDefaultQueue = "default";

// The fields of a job, raw; empty: not there, or null.
struct Fields {
  std::string_view request, kind, queue, priority, run_after, expires_in, max_receives, webhook, metadata,
      dedupe;
};
struct Field {
  std::string_view name;
  std::string_view Fields::* value;
};
constexpr std::array kFields = {Field{"request", &Fields::request},
                                Field{"queue", &Fields::queue},
                                Field{"metadata", &Fields::metadata},
                                Field{"priority", &Fields::priority},
                                Field{"webhook", &Fields::webhook},
                                Field{"run_after", &Fields::run_after},
                                Field{"expires_in", &Fields::expires_in},
                                Field{"max_receives", &Fields::max_receives},
                                Field{"kind", &Fields::kind},
                                Field{"dedupe", &Fields::dedupe}};

Status read_fields(JsonScanner& json, Fields& fields) {
  for (JsonString key; json.next_member(key);) {
    const auto known = std::ranges::find_if(kFields, [&](const Field& each) { return key.is(each.name); });
    if (known != kFields.end()) {
      const std::string_view value = json.skip();
      fields.*known->value = value == "null" ? std::string_view() : value;
      continue;
    }
    std::string name;
    key.append_to(name);
    name = to_valid_utf8(name.substr(0, kMostName));
    std::array<std::string_view, kFields.size()> names;
    std::ranges::transform(kFields, names.begin(), &Field::name);
    const std::string guess = did_you_mean(name, names);
    return fail(ErrorCode::kInvalidInput,
                fmt::format("There is no field \"{}\" here{}", name, guess.empty() ? "." : guess), name);
  }
  return {};
}

// One job of a request.
class JobReader {
 public:
  JobReader(const JobSource& source, std::string_view raw)
      : source_(source), raw_(raw), attributes_(source.attributes) {}

  Result<store::Submit> read(std::optional<std::size_t> index) {
    JsonScanner json(raw_);
    if (!json.enter_object())
      return fail(ErrorCode::kInvalidInput, "A job must be a JSON object, with the \"request\" to make.");
    if (Status read = read_fields(json, fields_); !read) return std::unexpected(read.error());
    if (!json.at_end()) return malformed(json);
    for (const auto part : {&JobReader::read_queue, &JobReader::read_call, &JobReader::read_times,
                            &JobReader::read_numbers, &JobReader::read_metadata, &JobReader::read_webhook}) {
      if (Status read = (this->*part)(); !read) return std::unexpected(std::move(read.error()));
    }
    if (Status read = read_key(source_.idempotency_key, index); !read)
      return std::unexpected(std::move(read.error()));
    submit_.attributes = write_attributes(attributes_);
    return std::move(submit_);
  }

 private:
  Status read_queue() {
    submit_.queue = kDefaultQueue;
    if (!fields_.queue.empty()) {
      Result<std::string> name = read_text("queue", fields_.queue, kMostName);
      if (!name) return std::unexpected(std::move(name.error()));
      submit_.queue = std::move(*name);
    }
    auto found = find_queue(submit_.queue, source_.service);
    if (!found) return std::unexpected(std::move(found.error()));
    queue_ = std::move(*found);
    submit_.max_depth = queue_->max_depth;
    submit_.max_receives = static_cast<std::uint32_t>(queue_->max_receives);
    submit_.caller = source_.caller_name();
    return {};
  }

  Status read_call() {
    const bool external = queue_->workers == config::QueueWorkers::kExternal;
    if (!fields_.kind.empty()) {
      JsonString kind;
      if (!JsonScanner(fields_.kind).read(kind) || !kind.is(store::kExternalEndpoint))
        return fail(ErrorCode::kInvalidInput, "\"kind\" must be \"external\", or not be there.", "kind");
      if (!external) {
        return fail(ErrorCode::kInvalidInput,
                    fmt::format("The queue \"{}\" is worked on by this server, which makes calls to models "
                                "only; jobs of the kind \"external\" are for queues with workers: external.",
                                queue_->name),
                    "kind");
      }
    }
    if (fields_.request.empty()) return missing_field("request", "what the job is to do");
    if (external) {
      if (!is_valid_utf8(fields_.request))
        return fail(ErrorCode::kInvalidInput, "\"request\" must be UTF-8.", "request");
      submit_.endpoint = store::kExternalEndpoint;
      submit_.body = fields_.request;
      return {};
    }
    Result<JobBody> call = read_job_body(fields_.request, source_);
    if (!call) return std::unexpected(std::move(call.error()));
    submit_.endpoint = std::move(call->endpoint);
    submit_.body = call->body;
    return {};
  }

  Status read_times() {
    if (!fields_.run_after.empty()) {
      const Result<store::Time> time = read_time("run_after", fields_.run_after);
      if (!time) return std::unexpected(time.error());
      if (*time > source_.now + static_cast<std::int64_t>(kLongestWait * 1e6))
        return fail(ErrorCode::kInvalidInput, "\"run_after\" is more than a year away.", "run_after");
      if (*time > source_.now) submit_.run_after = *time;
    }
    if (fields_.expires_in.empty()) return {};
    const Result<std::int64_t> length = read_seconds("expires_in", fields_.expires_in, kLongestWait);
    if (!length) return std::unexpected(length.error());
    submit_.expires = source_.now + *length;
    if (submit_.run_after >= submit_.expires)
      return fail(ErrorCode::kInvalidInput, "The job would expire before \"run_after\".", "expires_in");
    return {};
  }

  Status read_numbers() {
    if (!fields_.priority.empty()) {
      const Result<std::int64_t> priority = read_whole("priority", fields_.priority, 0, kMostPriority);
      if (!priority) return std::unexpected(priority.error());
      submit_.priority = static_cast<int>(*priority);
    }
    if (fields_.max_receives.empty()) return {};
    const Result<std::int64_t> receives = read_whole("max_receives", fields_.max_receives, 1, kMostReceives);
    if (!receives) return std::unexpected(receives.error());
    submit_.max_receives = static_cast<std::uint32_t>(*receives);
    return {};
  }

  Status read_metadata() {
    if (fields_.metadata.empty()) return {};
    Status good = check_metadata("metadata", fields_.metadata);
    if (good) submit_.metadata = fields_.metadata;
    return good;
  }

  Status read_webhook() {
    if (fields_.webhook.empty()) return {};
    std::string_view raw = fields_.webhook, field = "webhook";
    if (JsonScanner json(raw); json.enter_object()) {
      raw = {};
      for (JsonString key; json.next_member(key);) {
        const std::string_view value = json.skip();
        if (!key.is("url"))
          return fail(ErrorCode::kInvalidInput, "\"webhook\" has one field, \"url\".", "webhook");
        raw = value;
      }
      field = "webhook.url";
    }
    if (raw.empty()) return missing_field("webhook.url", "where the news is to go");
    Result<std::string> url = read_text(field, raw, kMostUrl);
    if (!url) return std::unexpected(std::move(url.error()));
    const auto settings = source_.service.settings();
    if (auto good = jobs::check_webhook_url(*url, settings->webhooks); !good)
      return fail(ErrorCode::kInvalidInput, std::move(good.error().message), std::string(field));
    attributes_.webhook = *url;
    submit_.webhook = std::move(*url);
    return {};
  }

  Status read_key(std::string_view idempotency_key, std::optional<std::size_t> index) {
    const auto settings = source_.service.settings();
    const store::Time until =
        source_.now +
        std::chrono::duration_cast<std::chrono::microseconds>(settings->idempotency_ttl).count();
    const auto set = [&](std::span<const std::string_view> key) {
      submit_.key = store::IdempotencyKey{.key = hash_of(key),
                                          .payload = hash_of(std::array{std::string_view("/v1/jobs"), raw_}),
                                          .until = until};
    };
    if (!fields_.dedupe.empty()) {
      if (!idempotency_key.empty()) {
        return fail(ErrorCode::kInvalidInput,
                    "\"dedupe\" makes an idempotency key of its own; send it or the header, not both.",
                    "dedupe");
      }
      std::string document, version;
      if (Status read = read_dedupe(document, version); !read) return read;
      set(std::array{source_.caller_name(), std::string_view("dedupe"), std::string_view(submit_.queue),
                     std::string_view(document), std::string_view(version)});
      return {};
    }
    if (idempotency_key.empty()) {
      if (!queue_->require_idempotency_key) return {};
      return key_needed(*queue_);
    }
    if (!index) {
      set(std::array{source_.caller_name(), idempotency_key});
      attributes_.idempotency_key = idempotency_key;
      return {};
    }
    const std::string number = std::to_string(*index);
    set(std::array{source_.caller_name(), idempotency_key, std::string_view(number)});
    return {};
  }

  Status read_dedupe(std::string& document, std::string& version) {
    JsonScanner json(fields_.dedupe);
    if (!json.enter_object()) {
      return fail(ErrorCode::kInvalidInput,
                  "\"dedupe\" must be an object with a document_id and a prompt_version.", "dedupe");
    }
    for (JsonString key; json.next_member(key);) {
      const std::string_view value = json.skip();
      const bool is_document = key.is("document_id");
      if (!is_document && !key.is("prompt_version")) {
        return fail(ErrorCode::kInvalidInput, "\"dedupe\" has two fields: document_id and prompt_version.",
                    "dedupe");
      }
      const std::string_view field = is_document ? "dedupe.document_id" : "dedupe.prompt_version";
      Result<std::string> text = read_text(field, value, kMostName);
      if (!text) return std::unexpected(std::move(text.error()));
      (is_document ? document : version) = std::move(*text);
    }
    if (document.empty()) return missing_field("dedupe.document_id", "what the job is about");
    return {};
  }

  const JobSource& source_;
  const std::string_view raw_;
  Fields fields_;
  std::shared_ptr<const config::JobQueue> queue_;
  JobAttributes attributes_;
  store::Submit submit_;
};

}  // namespace

Result<store::Submit> read_job(std::string_view raw, std::optional<std::size_t> index,
                               const JobSource& source) {
  return JobReader(source, raw).read(index);
}

std::unexpected<Error> malformed(const JsonScanner& json) {
  return fail(ErrorCode::kInvalidInput,
              json.too_deep() ? fmt::format("The JSON is nested too deep at byte {}: more than {} levels.",
                                            json.position(), JsonScanner::kMaxDepth)
                              : fmt::format("The body is not valid JSON at byte {}; send one JSON object.",
                                            json.position()));
}

std::unexpected<Error> key_needed(const config::JobQueue& queue) {
  return fail(ErrorCode::kInvalidInput,
              fmt::format("The queue \"{}\" takes jobs with an Idempotency-Key (or, in /v1/jobs, \"dedupe\") "
                          "only.",
                          queue.name),
              "Idempotency-Key");
}

Result<std::shared_ptr<const config::JobQueue>> find_queue(std::string_view name,
                                                           const jobs::Service& service) {
  auto found = service.queue(name);
  if (found) return found;
  const auto queues = service.queues();
  std::vector<std::string_view> names;
  for (const auto& each : queues) names.emplace_back(each->name);
  const std::string guess = did_you_mean(name, names);
  return fail(ErrorCode::kNotFound,
              fmt::format("There is no queue \"{}\"{} GET /v1/queues lists them.",
                          to_valid_utf8(name.substr(0, kMostName)), guess.empty() ? "." : guess),
              "queue");
}

}  // namespace waybill::api
