// Decides where each prompt of the command line goes.
//   route waybill.yaml "what is the refund policy?" ...
#include <cstdio>
#include <string>
#include <vector>

#include <waybill/router.h>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: route waybill.yaml PROMPT...\n", stderr);
    return 2;
  }
  const auto router = waybill::Router::load(argv[1]);
  if (!router) {
    std::fprintf(stderr, "%s\n", router.error().message.c_str());
    return 1;
  }
  const std::vector<std::string> prompts(argv + 2, argv + argc);
  const auto decisions = router->route_batch(prompts);
  if (!decisions) {
    std::fprintf(stderr, "%s\n", decisions.error().message.c_str());
    return 1;
  }
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const waybill::Decision& decision = (*decisions)[i];
    std::printf("%s\t%s\t%.2f\t%s\n", decision.route.c_str(), decision.model.c_str(), decision.score,
                prompts[i].c_str());
  }
  return 0;
}
