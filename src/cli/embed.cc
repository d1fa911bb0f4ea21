// `waybill embed`: texts in, embeddings out.
#include <iterator>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/json_writer.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/common_options.h"
#include "cli/input.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "embed/text.h"

namespace waybill::cli {
namespace {

struct EmbedOptions {
  std::vector<std::string> texts;
  std::string input_format = "lines";
  std::string config, model, precision;
  std::string long_text = "head";
  unsigned threads = 0;
  bool json = false;
};

embed::TextOptions text_options(const EmbedOptions& options) {
  embed::TextOptions out;
  if (options.long_text == "tail") out.long_text = embed::LongText::kTail;
  if (options.long_text == "ends") out.long_text = embed::LongText::kEnds;
  if (options.long_text == "windows") out.long_text = embed::LongText::kWindows;
  return out;
}

void write_embeddings(const embed::Model& model, const EmbedOptions& options,
                      std::span<const std::string> texts, std::span<const float> embeddings, Output& output) {
  std::string line;
  std::vector<embed::TokenId> ids;
  std::vector<std::uint32_t> offsets;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto embedding = embeddings.subspan(i * model.dim(), model.dim());
    line.clear();
    if (options.json) {
      ids.clear();
      offsets.assign(1, 0);
      embed::tokenize(model.tokenizer(), model.config(), texts[i], text_options(options), ids, offsets);
      JsonWriter json(line);
      json.begin_object().key("ids").integers(ids).key("embedding").floats(embedding).end_object();
    } else {
      for (const float value : embedding) fmt::format_to(std::back_inserter(line), "{:.9g} ", value);
      line.pop_back();
    }
    line += '\n';
    output.write(line);
  }
}

Outcome run_embed(const EmbedOptions& options) {
  const Result<ModelChoice> choice = choose_model(options.model, options.config, options.precision);
  if (!choice) return std::unexpected(choice.error());
  const Result<embed::Model> model = load_model(*choice);
  if (!model) return std::unexpected(model.error());

  Output output;
  const auto embed_and_write = [&](std::span<const std::string> texts) {
    const auto embeddings = embed::embed_texts(*model, texts, text_options(options), options.threads);
    write_embeddings(*model, options, texts, embeddings, output);
    return output.flush();
  };
  if (!options.texts.empty()) {
    if (const Status written = embed_and_write(options.texts); !written)
      return std::unexpected(written.error());
    return ExitCode::kDone;
  }
  TextReader reader(options.input_format == "jsonl" ? InputFormat::kJsonl : InputFormat::kLines);
  ProgressLine progress;
  for (std::vector<std::string> texts;;) {
    if (const Status read = reader.next(texts); !read) return std::unexpected(read.error());
    if (texts.empty()) return ExitCode::kDone;
    if (is_terminal(Stream::kOut)) progress.clear();
    if (const Status written = embed_and_write(texts); !written) return std::unexpected(written.error());
    progress.update("embedding", reader.bytes_taken(), reader.bytes_total());
  }
}

}  // namespace

void add_embed(CLI::App& app) {
  auto options = std::make_shared<EmbedOptions>();
  CLI::App& command = add_command(
      app,
      {.name = "embed",
       .summary = "turn texts into embeddings",
       .details =
           "Prints the embedding of each text, one a line and in order: numbers with spaces between them, or "
           "with --json an object with the token ids and the embedding. Without arguments the texts are "
           "read from standard input as they come. An empty line is the empty text.",
       .examples = "waybill embed \"a text\" \"and another\"\n"
                   "waybill embed --json < texts.txt > embeddings.jsonl\n"
                   "waybill embed --input-format jsonl --precision f32 < texts.jsonl\n"
                   "# a text that starts with a dash\n"
                   "waybill embed -- \"-5 degrees outside\""});
  add_texts(command, options->texts, "The texts; standard input if there are none");
  add_choice(command, "--input-format", options->input_format, {"lines", "jsonl"},
             "What stands on a line of standard input: a text, or JSON ({\"text\": ...} or a string)");
  add_json_flag(command, options->json, "One object a line with \"ids\" and \"embedding\"");
  add_precision_option(command, options->precision);
  add_choice(command, "--long-text", options->long_text, {"head", "tail", "ends", "windows"},
             "What of a text that is longer than the model takes: its beginning, its end, half of either, or "
             "the average of all");
  add_model_option(command, options->model);
  add_config_option(command, options->config);
  add_threads_option(command, options->threads);
  set_action(command, [options] { return run_embed(*options); });
}

}  // namespace waybill::cli
