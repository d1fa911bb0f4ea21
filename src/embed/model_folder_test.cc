#include "embed/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "embed/test_model.h"

namespace waybill::embed {
namespace {

using ::testing::HasSubstr;
using testing::kMeanPooling;
using testing::kModules;
using testing::kTinyConfig;
using testing::safetensors_of;
using testing::tiny_bert_tensors;
using testing::with;

class ModelFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("config.json", kTinyConfig);
    folder_.write("modules.json", kModules);
    folder_.write("1_Pooling/config.json", kMeanPooling);
    folder_.write("sentence_bert_config.json", R"({"max_seq_length": 4, "do_lower_case": false})");
    folder_.write("model.safetensors", safetensors_of(tiny_bert_tensors()));
  }
  void remove(const char* name) { std::filesystem::remove_all(folder_.path() / name); }
  ModelFolder open() {
    Result<ModelFolder> opened = ModelFolder::open(folder_.path());
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::move(*opened) : ModelFolder{};
  }
  std::string refusal(ErrorCode code) {
    const auto opened = ModelFolder::open(folder_.path());
    if (opened) return "(accepted)";
    EXPECT_EQ(opened.error().code, code) << opened.error().message;
    EXPECT_THAT(opened.error().message, HasSubstr(folder_.path().string()));
    return opened.error().message;
  }
  testing::TemporaryFolder folder_;
};

TEST_F(ModelFolderTest, APublishedFolderOpens) {
  const ModelFolder folder = open();
  EXPECT_EQ(folder.config.hidden, 4U);
  EXPECT_EQ(folder.config.head_dim(), 2U);
  EXPECT_EQ(folder.config.max_tokens, 4U);
  EXPECT_EQ(folder.config.pooling, Pooling::kMean);
  EXPECT_TRUE(folder.config.normalize);
  EXPECT_EQ(folder.tensor_prefix, "");
  const std::size_t shape[] = {6, 4};
  EXPECT_TRUE(folder.tensor("embeddings.word_embeddings.weight", shape));
}

TEST_F(ModelFolderTest, PrefixesAndOldLayerNormNamesAreFound) {
  folder_.write("model.safetensors", safetensors_of(tiny_bert_tensors("bert.", true)));
  const ModelFolder folder = open();
  EXPECT_EQ(folder.tensor_prefix, "bert.");
  const std::size_t shape[] = {4};
  EXPECT_TRUE(folder.tensor("embeddings.LayerNorm.weight", shape));
  EXPECT_TRUE(folder.tensor("encoder.layer.0.output.LayerNorm.bias", shape));
}

TEST_F(ModelFolderTest, APlainCheckpointIsPooledByMeanAndNormalised) {
  remove("modules.json");
  remove("1_Pooling");
  remove("sentence_bert_config.json");
  const ModelFolder folder = open();
  EXPECT_EQ(folder.config.pooling, Pooling::kMean);
  EXPECT_TRUE(folder.config.normalize);
  EXPECT_EQ(folder.config.max_tokens, 5U);
}

TEST_F(ModelFolderTest, ModulesMayLieInFoldersOfTheirOwn) {
  folder_.write("modules.json", with(with(kModules, "\"path\": \"\"", "\"path\": \"0_Transformer\""),
                                     "models.Pooling", "base.modules.pooling.Pooling"));
  for (const char* name : {"config.json", "sentence_bert_config.json", "model.safetensors"}) {
    std::filesystem::create_directories(folder_.path() / "0_Transformer");
    std::filesystem::rename(folder_.path() / name, folder_.path() / "0_Transformer" / name);
  }
  EXPECT_EQ(open().transformer, folder_.path() / "0_Transformer");
  EXPECT_EQ(open().config.max_tokens, 4U);
}

TEST_F(ModelFolderTest, PoolingAndNormalisationFollowTheModules) {
  folder_.write("modules.json", with(kModules, R"(,
  {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"})",
                                     ""));
  folder_.write("1_Pooling/config.json",
                R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false})");
  EXPECT_FALSE(open().config.normalize);
  EXPECT_EQ(open().config.pooling, Pooling::kCls);
  folder_.write("1_Pooling/config.json",
                R"({"embedding_dimension": 4, "pooling_mode": "cls", "include_prompt": true})");
  EXPECT_EQ(open().config.pooling, Pooling::kCls);
  folder_.write("1_Pooling/config.json", R"({"pooling_mode": ["mean", "max"]})");
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("several poolings"));
  folder_.write("1_Pooling/config.json", R"({"pooling_mode_cls_token": true})");
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("cls + mean"));
  folder_.write("1_Pooling/config.json",
                with(kMeanPooling, "\"word_embedding_dimension\": 4", "\"word_embedding_dimension\": 5"));
  EXPECT_THAT(refusal(ErrorCode::kCorrupt), HasSubstr("word_embedding_dimension"));
}

TEST_F(ModelFolderTest, TheLengthIsCappedByThePositions) {
  folder_.write("sentence_bert_config.json", R"({"max_seq_length": 256})");
  EXPECT_EQ(open().config.max_tokens, 5U);
  folder_.write("sentence_bert_config.json", R"({"max_seq_length": null})");
  folder_.write("tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656})");
  EXPECT_EQ(open().config.max_tokens, 5U);
  folder_.write("tokenizer_config.json", R"({"model_max_length": 3})");
  EXPECT_EQ(open().config.max_tokens, 3U);
}

TEST_F(ModelFolderTest, TheQueryPrefixIsReadWhereThereIsOne) {
  EXPECT_EQ(open().config.query_prefix, "");
  folder_.write("config_sentence_transformers.json", R"({"prompts": {"query": "query: ", "document": ""}})");
  EXPECT_EQ(open().config.query_prefix, "query: ");
}

TEST_F(ModelFolderTest, OtherFamiliesAreRefusedWithWhatIsSupported) {
  const auto config_with = [&](std::string_view from, std::string_view to) {
    folder_.write("config.json", with(kTinyConfig, from, to));
  };
  config_with(R"("bert")", R"("mpnet")");
  EXPECT_THAT(refusal(ErrorCode::kUnsupported),
              ::testing::AllOf(HasSubstr("\"mpnet\""), HasSubstr("\"bert\""), HasSubstr("all-MiniLM-L6-v2")));
  config_with(R"("hidden_act": "gelu")", R"("hidden_act": "silu")");
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("silu"));
  config_with("{", R"({"position_embedding_type": "relative_key", )");
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("relative_key"));
  config_with("{", R"({"is_decoder": true, )");
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("is_decoder"));
  folder_.write("config.json", kTinyConfig);
  folder_.write("modules.json", with(kModules, "models.Normalize", "models.Dense"));
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("Dense"));
}

TEST_F(ModelFolderTest, SizesOutOfBoundsAreRefused) {
  for (const auto& [from, to] : {std::pair{R"("hidden_size": 4)", R"("hidden_size": 0)"},
                                 {R"("hidden_size": 4)", R"("hidden_size": -4)"},
                                 {R"("hidden_size": 4)", R"("hidden_size": 4.5)"},
                                 {R"("hidden_size": 4)", R"("hidden_size": 1e18)"},
                                 {R"("hidden_size": 4)", R"("hidden_size": "4")"},
                                 {R"("hidden_size": 4,)", ""},
                                 {R"("num_attention_heads": 2)", R"("num_attention_heads": 3)"},
                                 {R"("num_hidden_layers": 1)", R"("num_hidden_layers": 99999999999)"},
                                 {R"("max_position_embeddings": 5)", R"("max_position_embeddings": 2)"},
                                 {R"("layer_norm_eps": 1e-12)", R"("layer_norm_eps": -1)"},
                                 {R"("layer_norm_eps": 1e-12)", R"("layer_norm_eps": 1e-62)"}}) {
    folder_.write("config.json", with(kTinyConfig, from, to));
    EXPECT_THAT(refusal(ErrorCode::kCorrupt), HasSubstr("config.json")) << to;
  }
  folder_.write("config.json",
                with(kTinyConfig, R"("hidden_size": 4)", R"("hidden_size": 4, "hidden_size": 8)"));
  EXPECT_THAT(refusal(ErrorCode::kCorrupt), HasSubstr("twice"));
}

TEST_F(ModelFolderTest, HalfCopiedFoldersAreRefusedWithWhatIsMissing) {
  remove("1_Pooling");
  EXPECT_THAT(refusal(ErrorCode::kNotFound), HasSubstr("1_Pooling/config.json"));
  remove("modules.json");
  remove("model.safetensors");
  EXPECT_THAT(refusal(ErrorCode::kNotFound), HasSubstr("model.safetensors"));
  folder_.write("pytorch_model.bin", "x");
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("convert"));
  folder_.write("model.safetensors.index.json", "{}");
  EXPECT_THAT(refusal(ErrorCode::kUnsupported), HasSubstr("several files"));
  remove("config.json");
  EXPECT_THAT(refusal(ErrorCode::kNotFound), HasSubstr("config.json"));
  remove("");
  EXPECT_THAT(refusal(ErrorCode::kNotFound), HasSubstr("tools/fetch-model"));
}

TEST_F(ModelFolderTest, WeightsThatDoNotFitTheConfigAreRefused) {
  folder_.write("config.json", with(kTinyConfig, R"("vocab_size": 6)", R"("vocab_size": 7)"));
  EXPECT_THAT(refusal(ErrorCode::kCorrupt), HasSubstr("[7, 4]"));
  folder_.write("config.json", with(kTinyConfig, R"("num_hidden_layers": 1)", R"("num_hidden_layers": 2)"));
  EXPECT_THAT(refusal(ErrorCode::kNotFound), HasSubstr("encoder.layer.1."));
}

TEST_F(ModelFolderTest, DamagedJsonFilesAreRefused) {
  folder_.write("config.json", kTinyConfig.substr(0, 40));
  EXPECT_THAT(refusal(ErrorCode::kCorrupt), HasSubstr("config.json is not valid JSON"));
  folder_.write("config.json", "");
  EXPECT_THAT(refusal(ErrorCode::kCorrupt), HasSubstr("empty"));
  folder_.write("config.json", kTinyConfig);
  folder_.write("modules.json", with(kModules, "1_Pooling", "../1_Pooling"));
  EXPECT_THAT(refusal(ErrorCode::kCorrupt), HasSubstr("out of the model folder"));
}

TEST_F(ModelFolderTest, TheFingerprintChangesWithTheFiles) {
  const auto before = open().fingerprint();
  EXPECT_EQ(open().fingerprint(), before);
  folder_.write("model.safetensors", safetensors_of(tiny_bert_tensors("bert.")));
  EXPECT_NE(open().fingerprint(), before);
}

TEST(PublishedModelTest, AllMiniLmOpens) {
  const char* chosen = std::getenv("WAYBILL_MODEL");
  const std::filesystem::path path =
      chosen != nullptr ? chosen : WAYBILL_SOURCE_DIR "/models/all-MiniLM-L6-v2";
  const auto folder = ModelFolder::open(path);
  ASSERT_TRUE(folder) << folder.error().message;
  EXPECT_EQ(folder->config.hidden, 384U);
  EXPECT_EQ(folder->config.max_tokens, 256U);
  EXPECT_TRUE(folder->config.normalize);
}

}  // namespace
}  // namespace waybill::embed
