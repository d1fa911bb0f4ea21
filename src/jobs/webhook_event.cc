#include "jobs/webhook_event.h"

#include <algorithm>
#include <chrono>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/json_writer.h"
#include "http/client_connection.h"

namespace waybill::jobs {
namespace {

// RFC 3339, in UTC.
std::string written(store::Time time) {
  const std::chrono::sys_time<std::chrono::microseconds> at{std::chrono::microseconds(time)};
  const auto second = std::chrono::floor<std::chrono::seconds>(at);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(second.time_since_epoch().count()),
                     (at - second).count());
}

// Values from outside: what would end the header, or is no header's character, leaves it out.
void add_header(std::string& head, std::string_view name, std::string_view value) {
  const auto is_fit = [](char c) { return (c >= ' ' && c < 0x7F) || c == '\t'; };
  if (value.empty() || !std::ranges::all_of(value, is_fit)) return;
  head.append(name).append(": ").append(value).append("\r\n");
}

}  // namespace

std::string webhook_id(const store::Job& job) {
  return fmt::format("msg_{}_{}", to_string(job.id), job.result);
}

std::string webhook_type(store::State state) { return fmt::format("ai.waybill.job.{}", to_string(state)); }

std::string write_webhook_event(const store::Job& job, const WebhookContents& contents) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.key("specversion").string("1.0");
  json.key("id").string(webhook_id(job));
  json.key("source").string("/v1/jobs");
  json.key("type").string(webhook_type(job.state));
  json.key("subject").string(to_string(job.id));
  json.key("time").string(written(job.finished));
  json.key("datacontenttype").string("application/json");
  if (!contents.traceparent.empty()) json.key("traceparent").string(contents.traceparent);
  if (!contents.tracestate.empty()) json.key("tracestate").string(contents.tracestate);
  if (!contents.correlation_id.empty()) json.key("correlationid").string(contents.correlation_id);
  json.key("data").raw(contents.job);
  json.end_object();
  return text;
}

std::string write_webhook_head(const WebhookUrl& url, const store::Job& job, const WebhookContents& contents,
                               std::span<const WebhookSecret> secrets, std::int64_t timestamp,
                               std::string_view body) {
  const std::string id = webhook_id(job);
  http::Origin origin;
  origin.tls = url.tls;
  origin.host = url.host;
  origin.port = url.port;
  std::string head = fmt::format(
      "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: waybill\r\nContent-Type: application/cloudevents+json; "
      "charset=utf-8\r\nContent-Length: {}\r\nwebhook-id: {}\r\nwebhook-timestamp: {}\r\nwebhook-signature: "
      "{}\r\n",
      url.target, origin.authority(), body.size(), id, timestamp, sign_webhook(secrets, id, timestamp, body));
  add_header(head, "traceparent", contents.traceparent);
  add_header(head, "tracestate", contents.tracestate);
  add_header(head, "x-correlation-id", contents.correlation_id);
  head += "\r\n";
  return head;
}

}  // namespace waybill::jobs
