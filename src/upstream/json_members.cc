#include "upstream/json_members.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace waybill::upstream {
namespace {

const char* begin_of(const JsonMember& member) noexcept { return member.key.raw.data() - 1; }
const char* end_of(const JsonMember& member) noexcept { return member.value.data() + member.value.size(); }

bool needs_no_escape(std::string_view name) noexcept {
  return std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

}  // namespace

Status JsonMembers::parse(std::string_view text) {
  text_ = text;
  members_.clear();
  JsonScanner json(text);
  if (!json.enter_object()) {
    return fail(ErrorCode::kInvalidInput, "The body must be a JSON object.");
  }
  for (JsonMember member; json.next_member(member.key);) {
    member.value = json.skip();
    if (json.failed()) break;
    if (members_.size() == kMaxMembers) {
      members_.clear();
      return fail(ErrorCode::kInvalidInput,
                  fmt::format("The body has more than {} members; send a smaller object.", kMaxMembers));
    }
    members_.push_back(member);
  }
  if (!json.at_end()) {
    members_.clear();
    return fail(ErrorCode::kInvalidInput,
                fmt::format("The body is not valid JSON at byte {}; send one JSON object.", json.position()));
  }
  return {};
}

const JsonMember* JsonMembers::find(std::string_view name) const {
  for (std::size_t i = members_.size(); i-- > 0;) {
    if (members_[i].key.is(name)) return &members_[i];
  }
  return nullptr;
}

void JsonMembers::splice(std::span<const JsonEdit> edits, std::string& out) const {
  out.clear();
  std::size_t size = text_.size();
  for (const JsonEdit& edit : edits) {
    WAYBILL_CHECK(needs_no_escape(edit.name));
    size += edit.name.size() + 4 + (edit.value ? edit.value->size() : 0);
  }
  out.reserve(size);

  const char* copied = text_.data();  // up to here, in the text, all has been written or left out
  const auto copy_to = [&](const char* end) { out.append(copied, end); };
  const char* last_end = text_.data() + text_.find('{') + 1;  // of the member before
  bool any = false;                                           // a member has been, or will be, written
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const JsonMember& member = members_[i];
    const auto edit = std::ranges::find_if(edits, [&](const JsonEdit& e) { return member.key.is(e.name); });
    if (edit != edits.end() && edit->value) {
      copy_to(member.value.data());
      out.append(*edit->value);
      copied = end_of(member);
    } else if (edit != edits.end() && any) {  // with the comma before it
      copy_to(last_end);
      copied = end_of(member);
    } else if (edit != edits.end()) {  // with the comma behind it
      copy_to(begin_of(member));
      copied = i + 1 < members_.size() ? begin_of(members_[i + 1]) : end_of(member);
    }
    any = any || edit == edits.end() || edit->value;
    last_end = end_of(member);
  }
  copy_to(std::max(copied, last_end));
  copied = std::max(copied, last_end);
  for (const JsonEdit& edit : edits) {
    if (!edit.value || find(edit.name) != nullptr) continue;
    if (any) out += ',';
    out.append(1, '"').append(edit.name).append("\":").append(*edit.value);
    any = true;
  }
  copy_to(text_.data() + text_.size());
}

}  // namespace waybill::upstream
