#include "api/job_attributes.h"

#include <array>

#include "base/json_writer.h"
#include "upstream/json_scanner.h"

namespace waybill::api {
namespace {

struct Member {
  std::string_view name;
  std::string JobAttributes::* value;
};
constexpr std::array kMembers = {Member{"idempotency_key", &JobAttributes::idempotency_key},
                                 Member{"correlation_id", &JobAttributes::correlation_id},
                                 Member{"traceparent", &JobAttributes::traceparent},
                                 Member{"tracestate", &JobAttributes::tracestate},
                                 Member{"session", &JobAttributes::session},
                                 Member{"cache", &JobAttributes::cache},
                                 Member{"webhook", &JobAttributes::webhook}};

}  // namespace

std::string write_attributes(const JobAttributes& attributes) {
  std::string text;
  JsonWriter json(text);
  for (const Member& member : kMembers) {
    const std::string& value = attributes.*member.value;
    if (value.empty()) continue;
    if (text.empty()) json.begin_object();
    json.key(member.name).string(value);
  }
  if (!text.empty()) json.end_object();
  return text;
}

JobAttributes read_attributes(std::string_view json) {
  JobAttributes attributes;
  upstream::JsonScanner scanner(json);
  if (!scanner.enter_object()) return attributes;
  for (upstream::JsonString key; scanner.next_member(key);) {
    std::string* wanted = nullptr;
    for (const Member& member : kMembers) {
      if (key.is(member.name)) wanted = &(attributes.*member.value);
    }
    upstream::JsonString value;
    if (wanted != nullptr && scanner.read(value)) {
      wanted->clear();
      value.append_to(*wanted);
    } else {
      scanner.skip();
    }
  }
  return attributes;
}

}  // namespace waybill::api
