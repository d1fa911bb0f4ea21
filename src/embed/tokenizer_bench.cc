// How quick the tokenizer is: loading, a short prompt, long English, other scripts.
// usage: tokenizer_bench [MODEL_FOLDER]
#include <algorithm>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "embed/tokenizer.h"

namespace {

// The CPU time of this thread: neighbours on the machine count less than on the wall clock.
double now_us() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// The best of seven rounds of `calls` calls, in microseconds a call.
double best_us(int calls, auto&& call) {
  double best = 1e9;
  for (int round = 0; round < 7; ++round) {
    const double start = now_us();
    for (int i = 0; i < calls; ++i) call();
    best = std::min(best, (now_us() - start) / calls);
  }
  return best;
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out.append(text).append(" ");
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "models/all-MiniLM-L6-v2";
  const auto tokenizer = waybill::embed::Tokenizer::load(folder);
  if (!tokenizer) {
    fmt::print(stderr, "tokenizer_bench: {}\n", tokenizer.error().message);
    return 1;
  }
  fmt::print("load                  {:9.0f} us\n",
             best_us(3, [&] { (void)waybill::embed::Tokenizer::load(folder); }));

  const std::pair<const char*, std::string> texts[] = {
      {"16-token prompt", "What is the exchange rate between the dollar and the euro right now?"},
      {"English, 10 times",
       repeated("Please summarise the attached quarterly report for our shareholders, in plain words.", 10)},
      {"rare words", repeated("Antidisestablishmentarianism floccinaucinihilipilification zxqvbnmkjh", 10)},
      {"German",
       repeated("Können Sie mir bitte erklären, wie ich meine Überweisung rückgängig machen kann?", 10)},
      {"Russian", repeated("Подскажите, пожалуйста, как отменить мой заказ и вернуть деньги на карту?", 10)},
      {"Chinese", repeated("请问我如何取消订单并将钱退回到我的银行卡上", 10)},
      {"Korean", repeated("주문을 취소하고 카드로 환불받으려면 어떻게 해야 하나요", 10)},
      {"10 MB of spaces", std::string().append(10'000'000, ' ')},
      {"10 MB, one word", std::string().append(10'000'000, 'x')},
      {"10 MB of text", repeated("The quick brown fox jumps over the lazy dog.", 222'222)},
  };
  std::vector<waybill::embed::TokenId> ids;
  for (const auto& [name, text] : texts) {
    const auto tokenize = [&] {
      ids.clear();
      tokenizer->encode(text, 256, ids);
    };
    tokenize();
    const double us = best_us(text.size() > 1'000'000 ? 1 : 2'000, tokenize);
    fmt::print("{:<20} {:5} ids {:11.3f} us {:8.1f} tokens/us {:9.0f} bytes/us\n", name, ids.size(), us,
               static_cast<double>(ids.size()) / us, static_cast<double>(text.size()) / us);
  }
  return 0;
}
