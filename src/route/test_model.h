// The real model, loaded once for all tests of a binary.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "embed/model.h"

namespace waybill::route {

inline std::filesystem::path testing_model_folder() {
  const char* const path = std::getenv("WAYBILL_MODEL");
  return path != nullptr ? path : WAYBILL_SOURCE_DIR "/models/all-MiniLM-L6-v2";
}

inline embed::Model load_testing_model(std::optional<embed::Precision> precision = std::nullopt) {
  embed::ModelOptions options;
  options.folder = testing_model_folder();
  options.precision = precision;
  Result<embed::Model> model = embed::Model::load(options);
  if (!model) {
    std::fprintf(stderr, "These tests need the real model; run tools/fetch-model or set WAYBILL_MODEL. %s\n",
                 model.error().message.c_str());
    std::abort();
  }
  return std::move(*model);
}

// In the precision that is picked by default.
inline const embed::Model& testing_model() {
  static const embed::Model model = load_testing_model();
  return model;
}

}  // namespace waybill::route
