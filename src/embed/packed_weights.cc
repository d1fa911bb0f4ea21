#include "embed/packed_weights.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/hash.h"
#include "embed/kernels/packing.h"
#include "embed/quantise.h"

namespace waybill::embed {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::uint64_t kMagic = 0x6B636170796177ULL;  // "waypack"
// The block: Header, one LinearHeader for each linear layer, floats (positions, norms), the kept masks,
// panels.
struct Header {
  std::uint64_t magic = kMagic;
  std::uint32_t version = PackedWeights::kVersion;
  std::uint32_t precision = 0;
  std::uint32_t isa = 0;
  std::uint32_t reserved = 0;
  std::uint64_t fingerprint = 0;
  std::uint64_t size = 0;      // of the whole block
  std::uint64_t checksum = 0;  // XXH3 of everything behind the header
  std::array<std::uint64_t, 2> padding{};
};
static_assert(sizeof(Header) == kAlignment);

struct LinearHeader {
  std::uint32_t outlier_count = 0;
  std::uint32_t terms = 0;
  std::int32_t limit = 0;
  std::uint32_t reserved = 0;
  std::array<std::uint32_t, kMaxOutliers> outliers{};
};
static_assert(sizeof(LinearHeader) == kAlignment);

constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

struct LinearShape {
  std::size_t inputs, outputs;
};

LinearShape shape_of(const ModelConfig& c, std::size_t kind) {
  switch (static_cast<LinearKind>(kind)) {
    case LinearKind::kQkv:
      return {c.hidden, 3 * c.hidden};
    case LinearKind::kAttentionOut:
      return {c.hidden, c.hidden};
    case LinearKind::kFeedForwardIn:
      return {c.hidden, c.intermediate};
    case LinearKind::kFeedForwardOut:
      return {c.intermediate, c.hidden};
  }
  WAYBILL_CHECK(false);
}

bool is_integer(Precision precision) {
  return precision == Precision::kInt8 || precision == Precision::kInt16;
}

const kernels::KernelTable& table_of(const PackedWeights::Target& target) {
  const kernels::KernelTable* const table = kernels::find_kernels(target.precision, target.isa);
  WAYBILL_CHECK(table != nullptr);
  return *table;
}

// Lays the parts of a block one after the other, and so finds its views and its size. `base` may be null
// while only the size is wanted.
struct Block {
  WeightsView view;
  std::size_t size = 0;

  Block(const ModelConfig& config, const PackedWeights::Target& target, const std::byte* base,
        std::span<const LinearHeader> headers)
      : size(sizeof(Header) + headers.size_bytes()) {
    const kernels::Layout layout = table_of(target).linear.layout;
    view.hidden_stride = round_up(config.hidden, kAlignment / sizeof(float));
    const auto floats = [&](std::size_t n) {
      return reinterpret_cast<const float*>(take(base, n * sizeof(float)));
    };
    const auto norm = [&] { return NormView{floats(view.hidden_stride), floats(view.hidden_stride)}; };
    view.positions = floats(config.positions * view.hidden_stride);
    view.embedding_norm = norm();
    view.layers.resize(config.layers);
    for (LayerView& layer : view.layers) {
      layer.attention_norm = norm();
      layer.output_norm = norm();
    }
    each_linear(config, [&](std::size_t i, kernels::PackedLinear& linear, const LinearShape& shape) {
      const LinearHeader& header = headers[i];
      linear = kernels::describe_linear(layout, shape.inputs, shape.outputs, header.terms);
      linear.limit = header.limit;
      linear.outlier_count = header.outlier_count;
      linear.outliers = header.outliers.data();
      if (!is_integer(target.precision)) return;
      const std::size_t kept = kernels::padded_inputs(layout, shape.inputs) + kernels::kRowSlack;
      linear.kept = reinterpret_cast<const std::uint32_t*>(take(base, kept * sizeof(std::uint32_t)));
    });
    each_linear(config, [&](std::size_t, kernels::PackedLinear& linear, const LinearShape&) {
      linear.panels = take(base, linear.panel_count * linear.panel_bytes);
    });
  }

 private:
  const std::byte* take(const std::byte* base, std::size_t bytes) {
    const std::byte* const at = base == nullptr ? nullptr : base + size;
    size += round_up(bytes, kAlignment);
    return at;
  }

  template <class Body>
  void each_linear(const ModelConfig& config, Body body) {
    for (std::size_t layer = 0; layer < config.layers; ++layer) {
      for (std::size_t kind = 0; kind < kLinearKinds; ++kind) {
        body(layer * kLinearKinds + kind, view.layers[layer].linear[kind], shape_of(config, kind));
      }
    }
  }
};

// Reads tensors as float32. The folder was checked when it was opened, so that they are there.
class TensorReader {
 public:
  explicit TensorReader(const ModelFolder& folder) : folder_(folder) {}

  void read(std::string_view name, std::initializer_list<std::size_t> shape, std::span<float> out) const {
    const Result<Tensor> tensor = folder_.tensor(name, std::span(shape.begin(), shape.size()));
    WAYBILL_CHECK(tensor.has_value());
    tensor->copy_to(out);
  }

  [[nodiscard]] std::vector<float> read(std::string_view name,
                                        std::initializer_list<std::size_t> shape) const {
    std::size_t elements = 1;
    for (const std::size_t n : shape) elements *= n;
    std::vector<float> out(elements);
    read(name, shape, out);
    return out;
  }

 private:
  const ModelFolder& folder_;
};

struct LinearTensors {
  std::vector<float> weights;  // [outputs][inputs]
  std::vector<float> bias;
};

LinearTensors read_linear(const ModelFolder& folder, std::size_t layer, std::size_t kind) {
  static constexpr std::array<std::string_view, 3> kProjections = {
      "attention.self.query", "attention.self.key", "attention.self.value"};
  static constexpr std::array<std::string_view, kLinearKinds> kNames = {"", "attention.output.dense",
                                                                        "intermediate.dense", "output.dense"};
  const TensorReader reader(folder);
  const auto [inputs, outputs] = shape_of(folder.config, kind);
  LinearTensors out{std::vector<float>(inputs * outputs), std::vector<float>(outputs)};
  const auto read = [&](std::string_view name, std::size_t first, std::size_t count) {
    const std::string full = fmt::format("encoder.layer.{}.{}", layer, name);
    reader.read(full + ".weight", {count, inputs},
                std::span(out.weights).subspan(first * inputs, count * inputs));
    reader.read(full + ".bias", {count}, std::span(out.bias).subspan(first, count));
  };
  if (static_cast<LinearKind>(kind) != LinearKind::kQkv) {
    read(kNames[kind], 0, outputs);
    return out;
  }
  for (std::size_t i = 0; i < kProjections.size(); ++i) read(kProjections[i], i * inputs, inputs);
  return out;
}

// The views of a block point to const; while it is being packed it is ours to write.
float* writable(const float* p) { return const_cast<float*>(p); }

void pack_rows(const ModelFolder& folder, const WeightsView& view) {
  const ModelConfig& c = folder.config;
  const TensorReader reader(folder);
  const std::vector<float> positions =
      reader.read("embeddings.position_embeddings.weight", {c.positions, c.hidden});
  const std::vector<float> types =
      reader.read("embeddings.token_type_embeddings.weight", {c.types, c.hidden});
  for (std::size_t p = 0; p < c.positions; ++p) {
    for (std::size_t i = 0; i < c.hidden; ++i) {
      writable(view.positions)[p * view.hidden_stride + i] = positions[p * c.hidden + i] + types[i];
    }
  }
  const auto norm = [&](const std::string& name, const NormView& to) {
    reader.read(name + ".weight", {c.hidden}, std::span(writable(to.gamma), c.hidden));
    reader.read(name + ".bias", {c.hidden}, std::span(writable(to.beta), c.hidden));
  };
  norm("embeddings.LayerNorm", view.embedding_norm);
  for (std::size_t layer = 0; layer < c.layers; ++layer) {
    norm(fmt::format("encoder.layer.{}.attention.output.LayerNorm", layer),
         view.layers[layer].attention_norm);
    norm(fmt::format("encoder.layer.{}.output.LayerNorm", layer), view.layers[layer].output_norm);
  }
}

std::unexpected<Error> stale(const std::filesystem::path& path, std::string_view why) {
  return fail(ErrorCode::kCorrupt, fmt::format("{} {}", path.string(), why));
}

}  // namespace

void PackedWeights::Free::operator()(std::byte* bytes) const noexcept { std::free(bytes); }

std::span<const std::byte> PackedWeights::block() const noexcept {
  return memory_ ? std::span<const std::byte>(memory_.get(), memory_size_) : file_.bytes();
}

Result<PackedWeights> PackedWeights::pack(const ModelFolder& folder, const Target& target,
                                          const OutlierChannels& outliers) {
  const std::size_t linears = folder.config.layers * kLinearKinds;
  WAYBILL_CHECK(outliers.empty() || outliers.size() == linears);
  std::vector<LinearHeader> headers(linears);
  if (is_integer(target.precision)) {
    for (std::size_t i = 0; i < linears; ++i) {
      const std::size_t count = outliers.empty() ? 0 : outliers[i].size();
      WAYBILL_CHECK(count <= kMaxOutliers);
      headers[i].outlier_count = static_cast<std::uint32_t>(count);
      if (count > 0) std::copy(outliers[i].begin(), outliers[i].end(), headers[i].outliers.begin());
      headers[i].terms = static_cast<std::uint32_t>(count + (target.precision == Precision::kInt8 ? 1 : 0));
    }
  }
  PackedWeights out;
  out.memory_size_ = Block(folder.config, target, nullptr, headers).size;
  out.memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, out.memory_size_)));
  if (!out.memory_) {
    return fail(ErrorCode::kIo, fmt::format("no memory for {} bytes of packed weights", out.memory_size_));
  }
  std::memset(out.memory_.get(), 0, out.memory_size_);
  auto* const stored = reinterpret_cast<LinearHeader*>(out.memory_.get() + sizeof(Header));
  out.view_ = Block(folder.config, target, out.memory_.get(), headers).view;
  pack_rows(folder, out.view_);
  const kernels::Layout layout = table_of(target).linear.layout;
  for (std::size_t i = 0; i < linears; ++i) {
    const kernels::PackedLinear& linear = out.view_.layers[i / kLinearKinds].linear[i % kLinearKinds];
    const auto [inputs, outputs] = shape_of(folder.config, i % kLinearKinds);
    const LinearTensors tensors = read_linear(folder, i / kLinearKinds, i % kLinearKinds);
    kernels::LinearNumbers numbers{inputs, outputs, tensors.bias, tensors.weights, {}, {}, {}};
    IntegerLinear integers;
    if (is_integer(target.precision)) {
      const std::span<const std::uint32_t> channels(headers[i].outliers.data(), headers[i].outlier_count);
      integers = quantise_linear(target.precision, tensors.weights, inputs, outputs, channels);
      headers[i].limit = integers.limit;
      numbers.integers = integers.integers;
      numbers.scales = integers.scales;
      numbers.side = integers.side;
      auto* const kept = const_cast<std::uint32_t*>(linear.kept);
      std::fill_n(kept, inputs, ~std::uint32_t{0});
      for (const std::uint32_t channel : channels) kept[channel] = 0;
    }
    kernels::pack_panels(layout, numbers, const_cast<std::byte*>(linear.panels));
    stored[i] = headers[i];
  }
  out.view_ = Block(folder.config, target, out.memory_.get(), std::span(stored, linears)).view;
  Header header;
  header.precision = static_cast<std::uint32_t>(target.precision);
  header.isa = static_cast<std::uint32_t>(target.isa);
  header.fingerprint = target.fingerprint;
  header.size = out.memory_size_;
  header.checksum = hash64(out.block().subspan(sizeof(Header)));
  std::memcpy(out.memory_.get(), &header, sizeof header);
  return out;
}

Result<PackedWeights> PackedWeights::open(const std::filesystem::path& path, const ModelConfig& config,
                                          const Target& target) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return std::unexpected(file.error());
  const std::span<const std::byte> bytes = file->bytes();
  const std::size_t linears = config.layers * kLinearKinds;
  Header header;
  if (bytes.size() < sizeof header + linears * sizeof(LinearHeader)) return stale(path, "is cut short");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) return stale(path, "is not a file of packed weights");
  if (header.version != kVersion) return stale(path, "was packed by another version of this program");
  if (header.precision != static_cast<std::uint32_t>(target.precision) ||
      header.isa != static_cast<std::uint32_t>(target.isa)) {
    return stale(path, "was packed for another precision or instruction set");
  }
  if (header.fingerprint != target.fingerprint) return stale(path, "was packed from another model");
  if (header.size != bytes.size()) return stale(path, "is cut short");
  if (header.checksum != hash64(bytes.subspan(sizeof header))) return stale(path, "is damaged");
  // The checksum stands for the rest: these are bytes that pack() laid down for this very target.
  const std::span headers(reinterpret_cast<const LinearHeader*>(bytes.data() + sizeof header), linears);
  Block block(config, target, bytes.data(), headers);
  if (block.size != bytes.size()) return stale(path, "does not fit the model");
  // What is never used is not to stay in memory for having been summed up; the rest comes back from the page
  // cache.
  file->drop_pages();
  PackedWeights out;
  out.file_ = std::move(*file);
  out.view_ = std::move(block.view);
  return out;
}

Status PackedWeights::save(const std::filesystem::path& path) const {
  const std::span<const std::byte> bytes = block();
  return write_file_atomically(path, std::span(&bytes, 1));
}

}  // namespace waybill::embed
