#include "route/dataset.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace waybill::route {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Dataset> tsv(std::string_view text) { return parse_dataset(text, DatasetFormat::kTsv, "f.tsv"); }
Result<Dataset> csv(std::string_view text) { return parse_dataset(text, DatasetFormat::kCsv, "f.csv"); }
Result<Dataset> jsonl(std::string_view text) { return parse_dataset(text, DatasetFormat::kJsonl, "f.jsonl"); }

std::vector<Example> examples(const Result<Dataset>& dataset) {
  EXPECT_TRUE(dataset) << (dataset ? "" : dataset.error().message);
  return dataset ? dataset->examples : std::vector<Example>{};
}

std::string error(const Result<Dataset>& dataset) {
  EXPECT_FALSE(dataset);
  return dataset ? "" : dataset.error().message;
}

TEST(Tsv, TheFirstTabSplitsLabelAndText) {
  EXPECT_THAT(examples(tsv("billing\tpay\tnow\nhelp\t\n")),
              ElementsAre(Example{"pay\tnow", "billing", 1}, Example{"", "help", 2}));
}

TEST(Tsv, AcceptsByteOrderMarkCrlfBlankLinesAndNoLastLineEnd) {
  EXPECT_THAT(examples(tsv("\xEF\xBB\xBF"
                           "a\tx\r\n\r\n  \r\nb\ty")),
              ElementsAre(Example{"x", "a", 1}, Example{"y", "b", 4}));
}

TEST(Tsv, InvalidUtf8BecomesTheReplacementCharacter) {
  EXPECT_THAT(examples(tsv("a\tx\xFFy\n")), ElementsAre(Example{"x\xEF\xBF\xBDy", "a", 1}));
}

TEST(Tsv, KeepsNulBytes) {
  EXPECT_THAT(examples(tsv(std::string_view("a\tx\0y\n", 6))),
              ElementsAre(Example{std::string("x\0y", 3), "a", 1}));
}

TEST(Tsv, ErrorsNameFileAndLine) {
  EXPECT_THAT(error(tsv("a\tx\nno tab\n")), HasSubstr("f.tsv:2: there is no tab"));
  EXPECT_THAT(error(tsv(" \tx\n")), HasSubstr("f.tsv:1: the label"));
  EXPECT_THAT(error(tsv("\n\n")), HasSubstr("no labelled text"));
  EXPECT_THAT(error(tsv("\xFF\xFE"
                        "a")),
              HasSubstr("UTF-16"));
}

TEST(Csv, TheHeaderNamesTheColumnsWhateverTheirOrderCaseAndNumber) {
  EXPECT_THAT(examples(csv("text,label\nhi,greet\n")), ElementsAre(Example{"hi", "greet", 2}));
  EXPECT_THAT(examples(csv("id,Category, Query \n7,greet,hi\n")), ElementsAre(Example{"hi", "greet", 2}));
}

TEST(Csv, QuotedFieldsHoldCommasQuotesAndLineEnds) {
  EXPECT_THAT(examples(csv("text,label\n\"a, \"\"b\"\"\nc\",x\r\nnext,y\r\n")),
              ElementsAre(Example{"a, \"b\"\nc", "x", 2}, Example{"next", "y", 4}));
}

TEST(Csv, WithoutAHeaderTheColumnThatRepeatsIsTheLabel) {
  EXPECT_THAT(examples(csv("one,a\ntwo,a\n")), ElementsAre(Example{"one", "a", 1}, Example{"two", "a", 2}));
  EXPECT_THAT(examples(csv("a,one\na,two\n")), ElementsAre(Example{"one", "a", 1}, Example{"two", "a", 2}));
  EXPECT_THAT(error(csv("a,b\nc,d\n")), HasSubstr("f.csv:1: cannot tell which column"));
}

TEST(Csv, ErrorsNameFileAndLine) {
  EXPECT_THAT(error(csv("text,label\n\nonly\n")), HasSubstr("f.csv:3: the record has 1 field(s)"));
  EXPECT_THAT(error(csv("text,label\nx,\n")), HasSubstr("f.csv:2: the label is empty"));
  EXPECT_THAT(error(csv("text,label\nx,y\n\"open,z\n")), HasSubstr("f.csv:3: a field opens"));
  EXPECT_THAT(error(csv("text,label\n\"x\"z,y\n")), HasSubstr("f.csv:2: after the closing"));
}

TEST(Jsonl, TakesTheUsualNamesForTextAndLabel) {
  EXPECT_THAT(examples(jsonl(R"({"text":"a\u00e9","label":"x"})"
                             "\n\n"
                             R"({"Utterance":"b","intent":" y ","id":3})"
                             "\n"
                             R"({"prompt":"c","route":7})"
                             "\n"
                             R"({"query":"d","label":null})")),
              ElementsAre(Example{"a\xC3\xA9", "x", 1}, Example{"b", "y", 3}, Example{"c", "7", 4},
                          Example{"d", "none", 5}));
}

TEST(Jsonl, ErrorsNameFileAndLine) {
  EXPECT_THAT(error(jsonl("{\"text\":\"a\",\"label\":\"x\"}\n{\"text\":")),
              HasSubstr("f.jsonl:2: not a JSON object"));
  EXPECT_THAT(error(jsonl("[1]")), HasSubstr("a line is one object"));
  EXPECT_THAT(error(jsonl(R"({"txt":"a","label":"x"})")), HasSubstr("there is no text"));
  EXPECT_THAT(error(jsonl(R"({"text":"a"})")), HasSubstr("there is no label"));
  EXPECT_THAT(error(jsonl(R"({"text":"a","label":["x"]})")), HasSubstr("there is no label"));
}

TEST(DatasetFormat, IsToldByTheExtension) {
  EXPECT_EQ(dataset_format_of("x/y.TSV"), DatasetFormat::kTsv);
  EXPECT_EQ(dataset_format_of("y.csv"), DatasetFormat::kCsv);
  EXPECT_EQ(dataset_format_of("y.ndjson"), DatasetFormat::kJsonl);
  EXPECT_THAT(dataset_format_of("y.xlsx").error().message, HasSubstr("--format"));
}

TEST(Dataset, AMissingFileIsAnErrorThatNamesIt) {
  EXPECT_THAT(error(load_dataset("/nonexistent/x.tsv")), HasSubstr("/nonexistent/x.tsv"));
}

TEST(Dataset, OutOfScopeLabelsAreKnownInEverySpelling) {
  for (const char* label :
       {"oos", "OOS", "out_of_scope", "Out-of-Scope", "out of scope", "default", "None"}) {
    EXPECT_TRUE(is_out_of_scope_label(label)) << label;
  }
  for (const char* label : {"", "oo", "ooss", "defaults", "billing"})
    EXPECT_FALSE(is_out_of_scope_label(label)) << label;
}

Dataset repeated_labels() {
  Dataset dataset{.name = "memory", .examples = {}};
  for (int i = 0; i < 60; ++i)
    dataset.examples.push_back({"text " + std::to_string(i), "label " + std::to_string(i % 3), i + 1});
  return dataset;
}

TEST(DrawShots, DrawsSoManyOfEachLabelInFileOrder) {
  const Dataset dataset = repeated_labels();
  const std::vector<std::size_t> drawn = draw_shots(dataset, 5, 1);
  std::map<std::string, int> count;
  for (const std::size_t i : drawn) ++count[dataset.examples[i].label];
  EXPECT_THAT(count, ElementsAre(testing::Pair("label 0", 5), testing::Pair("label 1", 5),
                                 testing::Pair("label 2", 5)));
  EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
  EXPECT_EQ(draw_shots(dataset, 0, 1).size(), 60U);
  EXPECT_EQ(draw_shots(dataset, 1000, 1).size(), 60U);
}

TEST(DrawShots, DependsOnTheSeedAndNotOnOtherLabels) {
  const Dataset dataset = repeated_labels();
  EXPECT_EQ(draw_shots(dataset, 5, 1), draw_shots(dataset, 5, 1));
  EXPECT_NE(draw_shots(dataset, 5, 1), draw_shots(dataset, 5, 2));

  Dataset without = dataset;
  std::erase_if(without.examples, [](const Example& example) { return example.label == "label 1"; });
  std::set<std::string> with_texts, without_texts;
  for (const std::size_t i : draw_shots(dataset, 5, 1)) {
    if (dataset.examples[i].label != "label 1") with_texts.insert(dataset.examples[i].text);
  }
  for (const std::size_t i : draw_shots(without, 5, 1)) without_texts.insert(without.examples[i].text);
  EXPECT_EQ(with_texts, without_texts);
}

TEST(DrawShots, FewerShotsAreASubsetOfMore) {
  const Dataset dataset = repeated_labels();
  const std::vector<std::size_t> few = draw_shots(dataset, 3, 9);
  const std::vector<std::size_t> many = draw_shots(dataset, 8, 9);
  EXPECT_TRUE(std::includes(many.begin(), many.end(), few.begin(), few.end()));
}

}  // namespace
}  // namespace waybill::route
