#include "route/engine.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "route/engine_slot.h"
#include "route/service_test.h"

namespace waybill::route {
namespace {

using testing::HasSubstr;

std::unique_ptr<Engine> load(const config::Config& config, const Engine* previous = nullptr) {
  auto engine = load_engine(config, {.wait_for_static = true}, previous);
  if (!engine) throw std::runtime_error(engine.error().message);
  return std::move(*engine);
}

TEST(Engine, DecidesAndEmbeds) {
  const auto engine = load(small_config());
  InlineExecutor executor;
  const auto decision = answer_of<DecisionAnswer>([&](auto&& done) {
    return engine->decisions().decide({.prompt = "w20 hello", .executor = &executor}, std::move(done));
  });
  ASSERT_TRUE(decision) << decision.error().message;
  DecideScratch scratch;
  EXPECT_EQ(decision->decision.route, small_router(small_config())->decide("w20 hello", scratch).route);
  const std::vector<embed::EmbeddingInput> inputs = {std::string_view("hello")};
  const auto embedding = answer_of<embed::EmbeddingAnswer>([&](auto&& done) {
    return engine->embeddings().embed({.inputs = inputs, .executor = &executor}, std::move(done));
  });
  ASSERT_TRUE(embedding) << embedding.error().message;
  EXPECT_EQ(embedding->embeddings.size(), engine->embedding_model().dim());
  EXPECT_EQ(engine->model_name(), small_model().folder().filename());
}

TEST(Engine, AReloadSharesTheModelsOfTheSameEncoderSection) {
  const auto first = load(small_config());
  config::Config config = small_config();
  config.routes[0].name = "renamed";
  const auto second = load(config, first.get());
  EXPECT_TRUE(second->reused_models());
  EXPECT_EQ(&second->decision_model(), &first->decision_model());
  EXPECT_EQ(second->router().routes()[0].name, "renamed");
  EXPECT_EQ(first->router().routes()[0].name, "route0");
  const embed::testing::SmallModel other;
  config.encoder.model = other.folder();
  const auto third = load(config, second.get());
  EXPECT_FALSE(third->reused_models());
  EXPECT_NE(&third->decision_model(), &first->decision_model());
}

TEST(Engine, AFailedLoadTellsWhyAndChangesNothing) {
  config::Config config = small_config();
  config.encoder.model = "/nowhere/at-all";
  const auto engine = load_engine(config);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(engine.error().message, HasSubstr("/nowhere/at-all"));
}

TEST(Engine, KeepsRoomInTheQueueForTheLongestPrompt) {
  config::Config config = small_config();
  config.encoder.long_text = config::LongText::kWindows;
  config.encoder.max_windows = 8;
  config.admission.max_queue_tokens = 1;
  config.tiers.static_tier.enabled = false;
  const auto engine = load(config);
  std::string prompt;
  for (std::size_t i = 0; i < 24; ++i) prompt += word(i) + " ";
  InlineExecutor executor;
  const auto answer = answer_of<DecisionAnswer>([&](auto&& done) {
    return engine->decisions().decide({.prompt = prompt, .executor = &executor}, std::move(done));
  });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->timing.tokens, 40U);
}

TEST(EngineSlot, ACallInFlightKeepsItsEngine) {
  EngineSlot slot(load(small_config()));
  std::shared_ptr<const Engine> held = slot.current();
  const std::weak_ptr<const Engine> first = held;
  config::Config config = small_config();
  config.routes[0].name = "renamed";
  slot.replace(load(config, held.get()));
  EXPECT_EQ(held->router().routes()[0].name, "route0");
  EXPECT_EQ(slot.current()->router().routes()[0].name, "renamed");
  held.reset();
  EXPECT_TRUE(first.expired());
}

}  // namespace
}  // namespace waybill::route
