#include "prompts.h"

#include <map>

namespace burst {
namespace {

using Words = std::vector<std::string_view>;

// clang-format off

// A pattern names its slots in braces: {n} is a number, the others draw from these lists.
const std::map<std::string_view, Words> kSlots = {
    {"name", {"Anna", "Bilal", "Chen", "Daniela", "Emeka", "Freya", "Goran", "Hana", "Ines", "Jonas",
              "Kavya", "Lars", "Mei", "Nadia", "Omar", "Priya", "Quentin", "Rosa", "Sven", "Tomasz",
              "Uma", "Viktor", "Wanjiru", "Xavier", "Yuki", "Zofia"}},
    {"city", {"Lisbon", "Leeds", "Osaka", "Nairobi", "Toronto", "Lyon", "Krakow", "Bogota", "Perth", "Dublin",
              "Austin", "Hanoi", "Turin", "Malmo", "Cairo", "Ghent", "Porto", "Seoul", "Denver", "Riga"}},
    {"language", {"French", "German", "Spanish", "Italian", "Polish", "Japanese", "Korean", "Arabic", "Dutch",
                  "Portuguese", "Swedish", "Turkish", "Greek", "Czech", "Hindi", "Finnish", "Hungarian"}},
    {"code", {"Python", "C++", "Rust", "Go", "JavaScript", "TypeScript", "Java", "Kotlin", "C#", "Ruby", "Swift", "SQL"}},
    {"task", {"parses a CSV file", "finds duplicate rows", "sorts a list of intervals", "caches the last results",
              "uploads a file in chunks", "validates a phone number", "retries a failed request", "walks a directory tree",
              "computes a moving average", "counts words in a stream", "merges two sorted arrays", "checks a password hash",
              "reads a config file", "balances a binary tree", "renders a progress bar", "limits the request rate"}},
    {"bug", {"a stack overflow", "a race condition", "a memory leak", "an off-by-one error", "a deadlock", "a type error",
             "a null pointer exception", "an import cycle", "a timeout in the tests", "an index out of range"}},
    {"subject", {"inflation", "coral reefs", "the printing press", "black holes", "urban planning", "vaccines", "jazz",
                 "deforestation", "remote work", "supply chains", "volcanoes", "the Roman senate", "electric cars",
                 "sleep", "migration", "tidal energy", "chess engines", "school lunches", "glaciers", "public transport"}},
    {"document", {"article", "report", "meeting transcript", "chapter", "research paper", "email thread", "press release",
                  "interview", "essay", "blog post", "policy brief", "podcast transcript"}},
    {"product", {"wireless headphones", "running shoes", "coffee machine", "office chair", "phone case", "winter jacket",
                 "desk lamp", "electric kettle", "backpack", "bluetooth speaker", "water filter", "yoga mat", "monitor",
                 "garden hose", "toaster", "bike helmet"}},
    {"symptom", {"a sore throat", "a dull headache", "dizziness", "a swollen ankle", "an itchy rash", "chest tightness",
                 "a dry cough", "stomach cramps", "blurred vision", "numb fingers", "a stiff neck", "heartburn"}},
    {"drug", {"ibuprofen", "paracetamol", "amoxicillin", "metformin", "aspirin", "omeprazole", "cetirizine", "warfarin",
              "insulin", "lisinopril", "prednisone", "sertraline"}},
    {"contract", {"lease", "employment contract", "loan agreement", "franchise agreement", "freelance contract",
                  "purchase agreement", "partnership deed", "service agreement", "licence agreement"}},
    {"dispute", {"unpaid overtime", "a broken boiler", "a late delivery", "water damage", "a breach of confidentiality",
                 "noise from the bar downstairs", "a withheld deposit", "a copied logo", "an unfair dismissal", "a boundary wall"}},
    {"hobby", {"gardening", "bouldering", "baking bread", "old synthesizers", "birdwatching", "board games", "cycling",
               "knitting", "stargazing", "salsa dancing", "film photography", "surfing"}},
    {"phrase", {"the train leaves at noon", "could you close the window", "I will be ten minutes late", "the bill, please",
                "we are looking for the museum", "my luggage did not arrive", "happy birthday to your sister",
                "the meeting was moved to Friday", "please sign on the second page", "I would like a room with a view",
                "the milk has gone off", "turn left after the bridge"}},
    {"function", {"sin(x)", "e^(2x)", "ln(x + 1)", "x^3 - 4x", "1/(x^2 + 1)", "sqrt(x)", "x*cos(x)", "tan(x)", "2^x", "x^2*e^x"}},
    {"month", {"January", "March", "April", "June", "August", "October", "December"}},
};

struct Topic {
  std::string_view name;
  Words asks;     // complete short prompts
  Words context;  // sentences that make a longer one
};

const std::vector<Topic> kTopics = {
    {"chat",
     {"hey {name} here, how is your {month} going?", "what do you think about {hobby}?", "tell me a funny story about {city}",
      "I just got back from {city} and I already miss it", "any ideas for a lazy Sunday with {name} and {n} cats?",
      "would you rather try {hobby} or {hobby}?", "cheer me up, {n} things went wrong today",
      "what is a good film to watch with {name} tonight?", "good evening, I am {name} from {city}, what's new?"},
     {"{name} and I talked about {hobby} for {n} minutes over lunch.", "The weather in {city} has been strange since {month}.",
      "My neighbour {name} bought {n} tomato plants and now the whole stairwell smells of them.",
      "I keep telling myself that I will take up {hobby} again, but then I just watch films.",
      "Last {month} we drove to {city} and sang along to the radio all the way."}},
    {"coding",
     {"write a {code} function that {task}", "my {code} program has {bug}, how do I find it?",
      "how do I call a {code} library from {code} without {bug}?", "review this {code} class that {task} in {n} lines",
      "why does {code} report {bug} on line {n}?", "write {n} unit tests for {code} code that {task}",
      "port this script that {task} from {code} to {code}", "make a {code} command line tool which {task}"},
     {"The service is written in {code} and {task} about {n} times a second.", "After the last merge the build shows {bug} in module {n}.",
      "The function takes {n} arguments, returns a pointer and {task} on a background thread.",
      "I tried a debugger, but it only says that there is {bug} near line {n}.",
      "Please keep the interface, add type annotations and explain the complexity."}},
    {"maths",
     {"what is {n} times {n} minus {n}?", "differentiate {function} + {n}x", "integrate {function} from 0 to {n}",
      "solve {n}x - {n} = {n} for x", "what is {n} percent of {n}?", "how many ways can I choose {n} cards out of {n}?",
      "find the limit of {function} divided by x^2 as x goes to {n}", "is {n} a prime number, and why?",
      "what is the variance of {n}, {n} and {n}?"},
     {"Let f(x) = {function} and g(x) = {n}x + {n}.", "The matrix has the rows ({n}, {n}) and ({n}, {n}).",
      "Assume that x is positive and that the sum of the first {n} terms equals {n}.",
      "A fair die is thrown {n} times and the results are added.", "Show every step of the calculation and check it with x = {n}."}},
    {"translation",
     {"translate '{phrase}' into {language}", "how do you say '{phrase}' in {language}?",
      "what is the {language} for '{phrase}', said to {n} people?", "is '{phrase}' polite in {language} or rather in {language}?",
      "put this into {language} for my friend {name}: {phrase}", "give me {n} {language} versions of '{phrase}'"},
     {"The text reads: {phrase}, and {phrase}.", "It goes to {name} in {city}, who only reads {language}.",
      "Keep the informal tone, {name} would find the formal {language} form odd.",
      "The second sentence says that {phrase} before the {n}th of {month}.", "Do not translate the names {name} and {city}."}},
    {"summarise",
     {"summarise the {document} about {subject} in {n} sentences", "what are the {n} key points of this {document} on {subject}?",
      "tl;dr the {document} by {name} about {subject}", "condense {n} pages on {subject} into one paragraph",
      "give me the gist of {name}'s {document} on {subject}", "write a {n} word abstract of this {document} on {subject}"},
     {"The {document} opens with a visit to {city}, where {subject} has shaped daily life since {month}.",
      "According to {name}, spending on {subject} rose by {n} percent while interest in {subject} fell.",
      "Critics point out that only {n} of the people asked had heard of {subject} at all.",
      "In the second part {name} compares {subject} with {subject} and finds more in common than expected.",
      "It closes with {n} recommendations for the council of {city}."}},
    {"legal",
     {"can I sue over {dispute} in {city}?", "is clause {n} of my {contract} enforceable?",
      "draft a {contract} between {name} and {name} for {n} months", "who is liable for {dispute} under a {contract}?",
      "how much notice must I give to end a {contract} after {n} months?", "what are my rights about {dispute} after {n} days?",
      "does a court in {city} accept a {contract} signed by email on {month} {n}?"},
     {"The {contract} was signed in {month} and runs for {n} months.", "Clause {n} says that either party may terminate with {n} days of notice.",
      "My landlord, {name}, refuses to pay for {dispute} and threatens to go to court.",
      "The other side claims damages of {n} euros because of {dispute}.", "Neither of us asked a lawyer before signing the {contract}."}},
    {"medical",
     {"I have had {symptom} for {n} days, what could it be?", "can I take {drug} together with {drug} if I have {symptom}?",
      "is {n} mg of {drug} too much for {symptom}?", "does {drug} cause {symptom} after {n} days?",
      "my {n} year old has {symptom} and {symptom}, should I see a doctor?", "how long until {drug} helps against {symptom} and {symptom}?",
      "what helps against {symptom} at night besides {drug}?"},
     {"It began {n} days ago with {symptom}, and since yesterday there is also {symptom}.", "I am {n} years old and take {n} mg of {drug} every morning.",
      "The blood test showed a value of {n}, which the nurse called a little high.", "There is a family history of high blood pressure, and {drug} gave me {symptom}.",
      "My temperature was {n} in the evening and I slept badly."}},
    {"support",
     {"where is my {product}? I ordered it {n} days ago", "my {product} arrived broken, order {n}, I want a refund",
      "you charged me {n} euros twice for the {product}", "how do I return the {product} that I bought in {month}?",
      "the coupon {n} is rejected at checkout for the {product}", "change the address of order {n} to {city} please",
      "I can't log in since {month} {n}, reset my password", "cancel my subscription number {n} for the {product} club"},
     {"The tracking page has said 'in transit to {city}' for {n} days.", "I already wrote to your colleague {name} and got no answer.",
      "The invoice for order {n} shows two {product} items, although I paid for one.", "The box was open and the {product} had a scratch on the left side.",
      "Please send the replacement to {name} in {city} or give me my money back."}},
};
// clang-format on

std::uint64_t hash(std::string_view text) {  // FNV-1a
  std::uint64_t h = 1469598103934665603u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h;
}

std::size_t words_in(std::string_view text) {
  std::size_t words = 1;
  for (const char c : text) words += c == ' ' ? 1 : 0;
  return words;
}

}  // namespace

PromptSource::PromptSource(std::uint64_t seed, std::size_t pool_size) : engine_(seed) {
  while (pool_.size() < pool_size) pool_.push_back(make_new());
}

std::string PromptSource::fill(std::string_view pattern) {
  std::string out;
  while (!pattern.empty()) {
    if (pattern.front() != '{') {
      out += pattern.front();
      pattern.remove_prefix(1);
      continue;
    }
    const std::size_t end = pattern.find('}');
    const std::string_view slot = pattern.substr(1, end - 1);
    if (slot == "n") {
      out += std::to_string(2 + below(unit() < 0.5 ? 30 : 5000));
    } else {
      const Words& words = kSlots.at(slot);
      out += words[below(words.size())];
    }
    pattern.remove_prefix(end + 1);
  }
  return out;
}

// Half of the prompts are one question, a third a question with some context, the rest a question about a
// pasted text. 72 words are rarely more than 125 tokens.
Prompt PromptSource::make() {
  const Topic& topic = kTopics[below(kTopics.size())];
  std::string text = fill(topic.asks[below(topic.asks.size())]);
  const double kind = unit();
  std::size_t target = 0;
  if (kind >= 0.5) target = kind < 0.83 ? 15 + below(20) : 36 + below(36);
  while (words_in(text) < target) {
    const std::string more = fill(topic.context[below(topic.context.size())]);
    if (words_in(text) + words_in(more) > 72) break;
    text += (text.back() == '.' || text.back() == '?' ? " " : ". ") + more;
  }
  return {text, topic.name};
}

Prompt PromptSource::make_new() {
  Prompt prompt = make();
  while (!seen_.insert(hash(prompt.text)).second) prompt = make();
  return prompt;
}

Prompt PromptSource::next() { return pool_.empty() ? make_new() : pool_[below(pool_.size())]; }

}  // namespace burst
