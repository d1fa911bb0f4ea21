// Several threads share one router: each embeds its share of the lines of standard input; then the two
// neighbouring lines that are most alike are printed.
//   embed_many waybill.yaml < texts.txt
#include <cstdio>
#include <iostream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <waybill/router.h>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: embed_many waybill.yaml < texts.txt\n", stderr);
    return 2;
  }
  const auto router = waybill::Router::load(argv[1]);
  if (!router) {
    std::fprintf(stderr, "%s\n", router.error().message.c_str());
    return 1;
  }
  std::vector<std::string> texts;
  for (std::string line; std::getline(std::cin, line);) texts.push_back(line);

  constexpr std::size_t kThreads = 4;
  std::vector<std::vector<float>> embeddings(texts.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < texts.size(); i += kThreads) {
          if (auto embedding = router->embed(texts[i])) embeddings[i] = std::move(*embedding);
        }
      });
    }
  }

  double best = -1;
  std::size_t first = 0;
  for (std::size_t i = 0; i + 1 < texts.size(); ++i) {
    if (embeddings[i].empty() || embeddings[i + 1].empty()) return 1;
    const double cosine =
        std::inner_product(embeddings[i].begin(), embeddings[i].end(), embeddings[i + 1].begin(), 0.0);
    if (cosine > best) {
      best = cosine;
      first = i;
    }
  }
  std::printf("%zu texts of %zu numbers\n", texts.size(), router->dim());
  if (texts.size() > 1) std::printf("%.3f\t%s\t%s\n", best, texts[first].c_str(), texts[first + 1].c_str());
  return 0;
}
