#include "cli/job_text.h"

#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/json_text.h"
#include "cli/terminal.h"
#include "upstream/json_scanner.h"
#include "upstream/sse_reader.h"

namespace waybill::cli {
namespace {

namespace json = boost::json;
using upstream::JsonScanner;
using upstream::JsonString;

constexpr double kMinute = 60, kHour = 3600, kDay = 86'400;

// The raw value of a member; empty where it is not there.
std::string_view raw_member(std::string_view object, std::string_view name) {
  JsonScanner scanner(object);
  if (!scanner.enter_object()) return {};
  for (JsonString key; scanner.next_member(key);) {
    const std::string_view value = scanner.skip();
    if (key.is(name)) return value;
  }
  return {};
}

// "choices", each given to `take`.
template <class Take>
void for_each_choice(const json::object& answer, Take take) {
  const json::value* found = answer.if_contains("choices");
  const json::array* choices = found == nullptr ? nullptr : found->if_array();
  if (choices == nullptr) return;
  for (const json::value& each : *choices) {
    if (const json::object* choice = each.if_object(); choice != nullptr) take(*choice);
  }
}

std::string text_of_answer(const json::object& answer) {
  std::string text;
  for_each_choice(answer, [&](const json::object& choice) {
    const json::object* message = object_of(choice, "message");
    const std::string part = message == nullptr ? text_of(choice, "text") : text_of(*message, "content");
    if (!text.empty() && !part.empty()) text += '\n';
    text += part;
  });
  return text;
}

std::string text_of_stream(std::string_view stream) {
  upstream::SseReader reader;
  reader.append(stream);
  reader.finish();
  std::string text;
  while (const auto event = reader.next()) text += text_of_chunk(event->data);
  return text;
}

// "a=1, b=2"
std::string pairs_text(const json::object& object) {
  std::string text;
  for (const auto& [name, value] : object) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{}={}", std::string_view(name),
                        value.is_string() ? std::string_view(value.get_string()) : std::string_view());
  }
  return text;
}

}  // namespace

Result<json::object> parse_object(std::string_view raw) {
  boost::system::error_code error;
  json::value value = json::parse(decodable_json(raw), error);
  if (error || !value.is_object()) {
    return fail(ErrorCode::kUpstreamFailed,
                "the server's answer is not what the API says; is it a Waybill server?");
  }
  return std::move(value.get_object());
}

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* found = object.if_contains(name);
  const json::string* text = found == nullptr ? nullptr : found->if_string();
  return text == nullptr ? std::string() : std::string(*text);
}

double number_of(const json::object& object, std::string_view name, double otherwise) {
  const json::value* found = object.if_contains(name);
  return found != nullptr && found->is_number() ? found->to_number<double>() : otherwise;
}

const json::object* object_of(const json::object& object, std::string_view name) {
  const json::value* found = object.if_contains(name);
  return found == nullptr ? nullptr : found->if_object();
}

std::string json_line(std::string_view raw) {
  std::string line(raw);
  // In JSON line breaks stand between values only.
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return line + '\n';
}

Result<ApiList> parse_list(std::string_view body) {
  ApiList list;
  bool has_data = false;
  JsonScanner scanner(body);
  if (scanner.enter_object()) {
    for (JsonString key; scanner.next_member(key);) {
      JsonString text;
      if (key.is("data") && scanner.enter_array()) {
        has_data = true;
        while (scanner.next_element()) list.items.push_back(scanner.skip());
      } else if (key.is("next") && scanner.read(text)) {
        text.append_to(list.next);
      } else {
        scanner.skip();
      }
    }
  }
  if (has_data && scanner.at_end()) return list;
  return fail(ErrorCode::kUpstreamFailed,
              "the server's answer is no list, as the API says; is it a Waybill server?");
}

Result<JobText> JobText::parse(std::string_view raw) {
  Result<json::object> object = parse_object(raw);
  if (!object) return std::unexpected(std::move(object.error()));
  JobText job;
  job.raw_ = raw;
  job.job_ = std::move(*object);
  return job;
}

std::string JobText::painted_status() const {
  const std::string word = status();
  if (word == "completed") return paint(Style::kGreen, word);
  if (word == "failed" || word == "dead") return paint(Style::kRed, word);
  if (word == "held" || word == "expired" || word == "cancelled") return paint(Style::kYellow, word);
  return word == "running" ? paint(Style::kCyan, word) : word;
}

bool JobText::is_over() const {
  const std::string word = status();
  return word != "queued" && word != "scheduled" && word != "running";
}

std::string JobText::answer() const {
  const json::object* result = object_of(job_, "result");
  const json::value* body = result == nullptr ? nullptr : result->if_contains("body");
  if (body == nullptr || body->is_null()) return {};
  if (const json::string* plain = body->if_string(); plain != nullptr) {
    const std::string text = text_of_stream(*plain);
    return text.empty() ? std::string(*plain) : text;
  }
  std::string text = body->is_object() ? text_of_answer(body->get_object()) : std::string();
  if (text.empty()) text = raw_member(raw_member(raw_, "result"), "body");
  return text;
}

std::string JobText::error() const {
  const json::object* error = object_of(job_, "error");
  return error == nullptr ? std::string()
                          : fmt::format("{}: {}", text_of(*error, "code"), text_of(*error, "message"));
}

std::string JobText::details(double now) const {
  std::string text;
  const auto add = [&text](std::string_view name, std::string_view value) {
    if (!value.empty())
      text += paint(Style::kDim, fmt::format("{:<9}", name)) + " " + std::string(value) + "\n";
  };
  const double created = number_of(job_, "created_at"), started = number_of(job_, "started_at"),
               finished = number_of(job_, "finished_at");
  add("id", id());
  add("status", painted_status());
  add("queue", fmt::format("{}, priority {}", text_of(job_, "queue"), number_of(job_, "priority")));
  add("call", text_of(job_, "endpoint"));
  add("created", relative_time(created, now));
  if (status() == "scheduled") add("begins", relative_time(number_of(job_, "run_after"), now));
  add("started", relative_time(started, now));
  std::string end = relative_time(finished, now);
  if (finished > 0 && started > 0) end += ", after " + rough_duration(finished - started);
  add("ended", end);
  if (!is_over()) add("expires", relative_time(number_of(job_, "expires_at"), now));
  add("receives", fmt::format("{} of {}", number_of(job_, "receives"), number_of(job_, "max_receives")));
  if (number_of(job_, "in_doubt") > 0) add("in doubt", fmt::format("{}", number_of(job_, "in_doubt")));
  if (const json::object* pairs = object_of(job_, "metadata")) add("metadata", pairs_text(*pairs));
  add("webhook", text_of(job_, "webhook"));
  if (const json::value* attempts = job_.if_contains("attempts");
      attempts != nullptr && attempts->is_array()) {
    for (const json::value& each : attempts->get_array()) {
      if (!each.is_object()) continue;
      const json::object& attempt = each.get_object();
      add("attempt", fmt::format("{}, {}: {}: {}", number_of(attempt, "receive"),
                                 relative_time(number_of(attempt, "ended_at"), now), text_of(attempt, "code"),
                                 text_of(attempt, "message")));
    }
  }
  add("error", paint(Style::kRed, error()));
  if (const std::string said = answer(); !said.empty()) {
    text += "\n" + said;
    if (!said.ends_with('\n')) text += '\n';
  }
  return text;
}

std::string text_of_chunk(std::string_view data) {
  boost::system::error_code error;
  const json::value value = json::parse(decodable_json(data), error);
  std::string text;
  if (error || !value.is_object()) return text;
  for_each_choice(value.get_object(), [&](const json::object& choice) {
    if (number_of(choice, "index") != 0) return;
    const json::object* delta = object_of(choice, "delta");
    text += delta == nullptr ? text_of(choice, "text") : text_of(*delta, "content");
  });
  return text;
}

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string rough_duration(double seconds) {
  constexpr double kMany = 100;  // of a unit: the next one is clearer
  if (seconds < 1) return fmt::format("{:.0f} ms", std::max(seconds, 0.0) * 1e3);
  if (seconds < kMany) return fmt::format("{:.0f} s", seconds);
  if (seconds < kMany * kMinute) return fmt::format("{:.0f} min", seconds / kMinute);
  return seconds < 2 * kDay ? fmt::format("{:.0f} h", seconds / kHour)
                            : fmt::format("{:.0f} d", seconds / kDay);
}

std::string relative_time(double at, double now) {
  if (at <= 0) return {};
  const double past = now - at;
  if (std::abs(past) < 1) return "now";
  return past > 0 ? rough_duration(past) + " ago" : "in " + rough_duration(-past);
}

}  // namespace waybill::cli
