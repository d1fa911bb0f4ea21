#include "upstream/model_names.h"

#include "upstream/json_scanner.h"

namespace waybill::upstream {

bool append_names(std::string_view body, std::string_view list, std::string_view name,
                  std::vector<std::string>& names) {
  JsonScanner json(body);
  if (!json.enter_object()) return false;
  bool found = false;
  for (JsonString key; json.next_member(key);) {
    if (!key.is(list) || !json.enter_array()) {
      json.skip();
      continue;
    }
    found = true;
    while (json.next_element()) {
      if (!json.enter_object()) {
        json.skip();
        continue;
      }
      for (JsonString inner; json.next_member(inner);) {
        JsonString text;
        if (inner.is(name) && json.read(text)) {
          text.append_to(names.emplace_back());
        } else {
          json.skip();
        }
      }
    }
  }
  return json.at_end() && found;
}

}  // namespace waybill::upstream
