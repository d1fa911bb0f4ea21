// The dialect of OpenAI's API, which most providers speak: bodies and streams go through as they are.
#pragma once

#include <memory>

#include "upstream/dialect.h"

namespace waybill::upstream {

struct OpenAiSettings {
  // Streams are asked for their usage. False: the provider refuses the field (Mistral), and is not sent it.
  bool stream_options = true;
};

[[nodiscard]] std::unique_ptr<const Dialect> make_openai_dialect(OpenAiSettings settings = {});

}  // namespace waybill::upstream
