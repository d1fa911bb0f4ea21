// Every key of waybill.yaml, once: its name, meaning, bounds and the member that it sets.
//
// A visitor walks a section through describe(visitor, section) and is called once for each key. The reader
// fills the members from YAML, the writer turns them into a tree, the schema builder into JSON Schema: what
// one of them knows, all know. The default of a key is what a default-constructed section holds.
#pragma once

#include <array>
#include <string_view>

#include "config/config.h"
#include "config/describe_jobs.h"
#include "config/describe_server.h"
#include "config/describe_upstream.h"
#include "config/key.h"

namespace waybill::config {

inline constexpr double kMostThreshold =
    1000;  // of a sum over top_k similarities; 1 with every other scoring
inline constexpr Bounds kCharacterCounts = {0, 1'000'000'000};
inline constexpr std::array<std::string_view, 5> kPrecisions = {"auto", "f32", "bf16", "int16", "int8"};
inline constexpr std::array kLongTexts = {
    Choice<LongText>{"auto", LongText::kAuto}, Choice<LongText>{"head", LongText::kHead},
    Choice<LongText>{"tail", LongText::kTail}, Choice<LongText>{"ends", LongText::kEnds},
    Choice<LongText>{"windows", LongText::kWindows}};
inline constexpr std::array kScorings = {Choice<Scoring>{"kernel", Scoring::kKernel},
                                         Choice<Scoring>{"aurelio", Scoring::kAurelio}};
inline constexpr std::array kAggregations = {Choice<Aggregation>{"mean", Aggregation::kMean},
                                             Choice<Aggregation>{"sum", Aggregation::kSum},
                                             Choice<Aggregation>{"max", Aggregation::kMax}};

template <class Visitor>
void describe(Visitor& v, Encoder& e) {
  v.path({"model",
          "Folder of the sentence encoder as Hugging Face publishes it (config.json, tokenizer, "
          "model.safetensors); "
          "relative to this file."},
         e.model);
  v.name({"precision", "Arithmetic of the encoder. auto: the fastest on this CPU that decides like f32."},
         kPrecisions, e.precision);
  v.choice(
      {"long_text",
       "What becomes of a prompt with more tokens than the encoder takes: its head, its tail, both ends, or "
       "the average over windows. auto: the ends for decisions, the head for embeddings."},
      kLongTexts, e.long_text);
  v.integer({"max_windows", "At most this many windows of one prompt, with long_text: windows."}, {1, 1024},
            e.max_windows);
  v.automatic({"threads", "Computing threads. auto: one per core."}, {1, 1024}, e.threads);
  v.flag({"cache_file", "Keep the packed weights in a file beside the model, for a start in milliseconds."},
         e.cache_file);
}

template <class Visitor>
void describe(Visitor& v, Head& h) {
  v.choice(
      {"scoring",
       "How similarities become a route. kernel: kernel regression with calibrated probabilities; aurelio: "
       "the aggregate of the nearest utterances, as the semantic-router library scores."},
      kScorings, h.scoring);
  v.number({"reject_quantile",
            "threshold: auto is set so that this share of a route's own utterances would be rejected."},
           {0, 0.5}, h.reject_quantile);
  v.choice({"aggregation", "How the nearest utterances of a route are put together, with scoring: aurelio."},
           kAggregations, h.aggregation);
  v.integer({"top_k", "How many nearest utterances are looked at, with scoring: aurelio."}, {1, 1000},
            h.top_k);
  v.utterances({"out_of_scope", "Prompts that belong to no route; they teach the head what to reject."},
               h.out_of_scope);
  v.utterances_file({"out_of_scope_file", "More of them, one a line."}, h.out_of_scope);
}

template <class Visitor>
void describe(Visitor& v, ExactCache& c) {
  v.flag({"enabled", "Answer a prompt that was decided before from memory."}, c.enabled);
  v.size({"max_size", "Memory for it."}, c.max_bytes);
}

template <class Visitor>
void describe(Visitor& v, StaticTier& s) {
  v.flag({"enabled", "Decide clear prompts from a table of token vectors, without the encoder."}, s.enabled);
  v.number(
      {"agreement", "It decides only where it has been calibrated to agree with the encoder this often."},
      {0.5, 1}, s.agreement);
  v.flag({"when_overloaded", "It decides alone, marked degraded, when the encoder could not answer in time."},
         s.when_overloaded);
}

template <class Visitor>
void describe(Visitor& v, Tiers& t) {
  v.section({"cache", "The exact cache: decisions by prompt."}, t.cache);
  v.section({"static", "The static tier: decisions from token vectors."}, t.static_tier);
}

template <class Visitor>
void describe(Visitor& v, Route& r) {
  v.text({"name", "What clients and decisions call it.", true}, r.name);
  v.text({"model", "The model that serves it. Default: the route's name."}, r.model);
  v.text({"description", "For people."}, r.description);
  v.utterances({"utterances", "What people say when they mean this route; 5 to 20 are a good start."},
               r.utterances);
  v.utterances_file({"utterances_file",
                     "More of them, one a line; relative to this file. Blank lines and lines that begin "
                     "with # are skipped; \\# begins an utterance with #."},
                    r.utterances);
  v.threshold({"threshold",
               "The least probability that chooses this route. auto: see head.reject_quantile. With scoring: "
               "aurelio, the least aggregate (a cosine, not a probability)."},
              r.threshold);
  v.metadata({"metadata", "Your own notes, given back with the decision."}, r.metadata);
}

template <class Visitor>
void describe(Visitor& v, Condition::Keyword& k) {
  v.texts({"words", "Any of them.", true}, k.words);
  v.flag({"whole_words", "Not within a longer word."}, k.whole_words);
  v.flag({"case_sensitive", "Upper and lower case differ."}, k.case_sensitive);
}

template <class Visitor>
void describe(Visitor& v, Condition::Length& l) {
  v.count({"min", "At least this many characters (Unicode code points)."}, l.min);
  v.count({"max", "At most this many characters (Unicode code points)."}, l.max);
}

template <class Visitor>
void describe(Visitor& v, Rule& r) {
  v.text({"name", "What decisions call it. Default: rule 1, rule 2, ..."}, r.name);
  v.condition({"when", "The condition on the prompt.", true}, r.when);
  v.text({"route", "Decides for this route (or for the default route) before any model is asked."}, r.route);
  v.texts({"veto", "These routes may not be chosen."}, r.veto);
}

template <class Visitor>
void describe(Visitor& v, Config& c) {
  v.text({"default_route", "What a prompt gets that no route claims. Need not be one of the routes."},
         c.default_route);
  v.text(
      {"default_model", "The model that serves the default route. Default: that route's model, or its name."},
      c.default_model);
  v.sections({"routes", "The meanings that prompts are told apart by."}, c.routes);
  v.sections(
      {"rules", "What is known without asking a model: the first rule that holds decides, vetoes add up."},
      c.rules);
  v.sections({"providers", "Where language models are: endpoints, with their keys and limits."}, c.providers);
  v.sections({"models", "The names that clients ask for, and what serves each."}, c.models);
  v.sections({"prices", "What tokens cost, where it differs from the table that comes with the program."},
             c.prices);
  v.section({"gateway", "How calls are made for clients."}, c.gateway);
  v.section({"store", "Where jobs are kept."}, c.store);
  v.section({"jobs", "Calls that are accepted now and made later, by workers."}, c.jobs);
  v.section({"encoder", "The sentence encoder."}, c.encoder);
  v.section({"head", "From an embedding to a route."}, c.head);
  v.section({"tiers", "Cheaper ways to decide, asked before the encoder."}, c.tiers);
  v.section({"server", "How `waybill serve` listens, and the limits of a connection."}, c.server);
  v.sections({"keys", "Who may call, by API key. Without keys everybody may."}, c.keys);
  v.section({"admission", "How long a request may take, and when it is not taken."}, c.admission);
  v.section({"telemetry", "What the server tells of its work."}, c.telemetry);
  v.path({"cache_folder", "Utterance embeddings and fitted heads are kept here; relative to this file."},
         c.cache_folder);
}

// The alternatives of a condition; a condition is a mapping with one of these keys.
inline constexpr std::array kConditionKeys = {
    Key{"all", "All of these conditions hold."},
    Key{"any", "At least one of these conditions holds."},
    Key{"not", "This condition does not hold."},
    Key{"keyword",
        "Any of these words stands in the prompt, whole and in any case; or a mapping with words, "
        "whole_words and "
        "case_sensitive."},
    Key{"regex", "This RE2 pattern matches somewhere in the prompt."},
    Key{"language",
        "The prompt is written in one of these languages (ISO 639-1). Not known for short prompts."},
    Key{"length", "The prompt is this long, in characters."},
};

}  // namespace waybill::config
