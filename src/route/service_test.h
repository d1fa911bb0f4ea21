// What the tests of the services share: a configuration on a model that loads in a millisecond.
#pragma once

#include <array>
#include <filesystem>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "config/config.h"
#include "embed/batcher_fakes_test.h"
#include "embed/small_model_test.h"
#include "route/decision_service.h"
#include "route/router.h"

namespace waybill::route {

inline const embed::testing::SmallModel& small_model() {
  static const embed::testing::SmallModel model;
  return model;
}

// Three routes of random words. The model takes 3 of them at a time.
inline config::Config small_config() {
  config::Config config;
  config.encoder.model = small_model().folder();
  config.encoder.precision = "f32";
  config.encoder.cache_file = false;
  config.encoder.threads = 2;
  config.cache_folder =
      std::filesystem::temp_directory_path() / ("waybill-service-" + std::to_string(::getpid()));
  for (std::size_t r = 0; r < 3; ++r) {
    config::Route& route = config.routes.emplace_back();
    route.name = route.model = "route" + std::to_string(r);
    for (std::size_t u = 0; u < 6; ++u)
      route.utterances.push_back(
          {.text = "w" + std::to_string(20 + 100 * r + 7 * u) + " hello", .position = {}});
  }
  return config;
}

inline std::unique_ptr<Router> small_router(const config::Config& config) {
  RouterOptions options;
  options.wait_for_static = true;
  auto router = Router::load(config, small_model().model(), options);
  if (!router) throw std::runtime_error(router.error().message);
  return std::move(*router);
}

inline std::string word(std::size_t i) { return "w" + std::to_string(7 + i % 490); }

// Calls and waits for the answer, whichever way it comes.
template <class Answer, class Call>
Result<Answer> answer_of(const Call& call) {
  std::promise<Result<Answer>> promise;
  auto at_once = call([&promise](Result<Answer> answer) { promise.set_value(std::move(answer)); });
  return at_once ? *std::move(at_once) : promise.get_future().get();
}

}  // namespace waybill::route
