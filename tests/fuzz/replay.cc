// Runs fuzz targets over files and folders of inputs: how the corpora are replayed where libFuzzer is not
// linked. All targets are in this one program, each under its own name, because linking a program for each
// takes far longer. usage: fuzz_corpora TARGET PATH...
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

using FuzzTarget = int(const std::uint8_t* data, std::size_t size);

// fuzz_targets.inc holds TARGET(name) for each of them.
#define TARGET(name) extern "C" FuzzTarget name;
#include "fuzz_targets.inc"
#undef TARGET

namespace {

constexpr std::pair<std::string_view, FuzzTarget*> kTargets[] = {
#define TARGET(name) {#name, name},
#include "fuzz_targets.inc"
#undef TARGET
};

std::size_t replay(FuzzTarget* target, const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  target(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  FuzzTarget* target = nullptr;
  for (const auto& [name, function] : kTargets) {
    if (argc > 1 && name == argv[1]) target = function;
  }
  if (target == nullptr) {
    std::fprintf(stderr, "usage: fuzz_corpora TARGET PATH...\n");
    return 2;
  }
  std::size_t count = 0;
  for (int i = 2; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      count += replay(target, argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (entry.is_regular_file()) count += replay(target, entry.path());
    }
  }
  std::printf("%zu inputs\n", count);
  return count == 0 ? 1 : 0;
}
