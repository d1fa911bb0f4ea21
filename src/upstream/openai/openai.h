// The dialect of OpenAI's API, which most providers speak: bodies and streams go through as they are.
#pragma once

#include <memory>

#include "upstream/dialect.h"

namespace waybill::upstream {

[[nodiscard]] std::unique_ptr<const Dialect> make_openai_dialect();

}  // namespace waybill::upstream
