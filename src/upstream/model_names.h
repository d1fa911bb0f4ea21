// Lists of models, as providers answer them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace waybill::upstream {

// Of {"<list>": [{"<name>": "a"}, ...]}: appends each name. False: the text is no such object.
[[nodiscard]] bool append_names(std::string_view body, std::string_view list, std::string_view name,
                                std::vector<std::string>& names);

}  // namespace waybill::upstream
