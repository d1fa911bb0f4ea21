// The dialect of Ollama's own API: NDJSON, translated to and from OpenAI's.
#pragma once

#include <memory>

#include "upstream/dialect.h"
#include "upstream/ollama/ollama_request.h"

namespace waybill::upstream {

[[nodiscard]] std::unique_ptr<const Dialect> make_ollama_dialect(OllamaSettings settings);

}  // namespace waybill::upstream
