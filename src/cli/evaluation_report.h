// An evaluation as it is read: on the terminal, as a page with plots, or by a program.
#pragma once

#include <string>

#include "route/evaluation.h"

namespace waybill::cli {

// `width` columns; the routes that do worst are shown first, all of them when `all_routes`.
[[nodiscard]] std::string evaluation_text(const route::Evaluation& evaluation, std::size_t width,
                                          bool all_routes);

// One JSON object and a line end.
[[nodiscard]] std::string evaluation_json(const route::Evaluation& evaluation);

// One self-contained HTML page.
[[nodiscard]] std::string evaluation_page(const route::Evaluation& evaluation);

}  // namespace waybill::cli
