#include "embed/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include <boost/json/array.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <immintrin.h>

#include "base/check.h"
#include "embed/json.h"

namespace waybill::embed {
namespace {

namespace json = boost::json;

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kMaxDimensions = 8;

struct KnownType {
  std::string_view name;
  std::size_t bytes;
  DType dtype;
};
constexpr std::array kKnownTypes = {
    KnownType{"F32", 4, DType::kF32},       KnownType{"F16", 2, DType::kF16},
    KnownType{"BF16", 2, DType::kBf16},     KnownType{"I64", 8, DType::kOther},
    KnownType{"I32", 4, DType::kOther},     KnownType{"F64", 8, DType::kOther},
    KnownType{"U8", 1, DType::kOther},      KnownType{"BOOL", 1, DType::kOther},
    KnownType{"I8", 1, DType::kOther},      KnownType{"I16", 2, DType::kOther},
    KnownType{"U16", 2, DType::kOther},     KnownType{"U32", 4, DType::kOther},
    KnownType{"U64", 8, DType::kOther},     KnownType{"F8_E5M2", 1, DType::kOther},
    KnownType{"F8_E4M3", 1, DType::kOther},
};

std::unexpected<Error> corrupt(std::string_view file, std::string_view what) {
  return fail(ErrorCode::kCorrupt, fmt::format("{}: {}; fetch the file again", file, what));
}

std::optional<std::size_t> whole_number(const json::value& value) {
  json::error_code ec;
  const auto number = value.is_number() ? value.to_number<std::uint64_t>(ec) : 0;
  if (!value.is_number() || ec) return std::nullopt;
  return number;
}

// The element count, if it and the size in bytes fit into 64 bits.
std::optional<std::size_t> size_in_bytes(std::span<const std::size_t> shape, std::size_t element_bytes) {
  std::size_t bytes = element_bytes;
  for (const std::size_t n : shape) {
    if (__builtin_mul_overflow(bytes, n, &bytes)) return std::nullopt;
  }
  return bytes;
}

struct Entry {
  Tensor tensor;
  std::size_t begin = 0, end = 0;  // in the data after the header
};

// One member of the header: {"dtype": "F32", "shape": [384], "data_offsets": [0, 1536]}.
Result<Entry> read_entry(std::string_view file, std::string_view name, const json::value& value,
                         std::span<const std::byte> data) {
  const json::object* object = value.if_object();
  const json::value* dtype = object != nullptr ? object->if_contains("dtype") : nullptr;
  const json::value* shape = object != nullptr ? object->if_contains("shape") : nullptr;
  const json::value* offsets = object != nullptr ? object->if_contains("data_offsets") : nullptr;
  if (dtype == nullptr || !dtype->is_string() || shape == nullptr || !shape->is_array() ||
      offsets == nullptr || !offsets->is_array()) {
    return corrupt(file,
                   fmt::format("the header's entry for {} lacks dtype, shape or data_offsets", quoted(name)));
  }
  const std::string_view type_name(dtype->get_string().data(), dtype->get_string().size());
  const auto* const type = std::ranges::find(kKnownTypes, type_name, &KnownType::name);
  if (type == kKnownTypes.end()) {
    return fail(
        ErrorCode::kUnsupported,
        fmt::format(
            "{}: {} has the element type {}, which is not supported; save the model as float32 or bfloat16",
            file, quoted(name), quoted(type_name)));
  }
  Entry entry;
  entry.tensor.dtype = type->dtype;
  for (const json::value& dimension : shape->get_array()) {
    const auto n = whole_number(dimension);
    if (!n || entry.tensor.shape.size() == kMaxDimensions) {
      return corrupt(file, fmt::format("the shape of {} is not a list of at most {} whole numbers",
                                       quoted(name), kMaxDimensions));
    }
    entry.tensor.shape.push_back(*n);
  }
  const json::array& range = offsets->get_array();
  const auto begin = range.size() == 2 ? whole_number(range[0]) : std::nullopt;
  const auto end = range.size() == 2 ? whole_number(range[1]) : std::nullopt;
  if (!begin || !end || *begin > *end) {
    return corrupt(
        file, fmt::format("the data_offsets of {} are not two whole numbers, lower first", quoted(name)));
  }
  if (*end > data.size()) {
    return corrupt(
        file, fmt::format("{} should end at byte {} of the data, but the file has only {}: it is truncated",
                          quoted(name), *end, data.size()));
  }
  if (size_in_bytes(entry.tensor.shape, type->bytes) != *end - *begin) {
    return corrupt(file,
                   fmt::format("{} has {} bytes, but its shape [{}] of {} needs another number", quoted(name),
                               *end - *begin, fmt::join(entry.tensor.shape, ", "), type_name));
  }
  entry.begin = *begin;
  entry.end = *end;
  entry.tensor.bytes = data.subspan(*begin, *end - *begin);
  return entry;
}

}  // namespace

std::size_t Tensor::elements() const noexcept {
  std::size_t n = 1;
  for (const std::size_t d : shape) n *= d;
  return n;
}

void Tensor::copy_to(std::span<float> out) const {
  WAYBILL_CHECK(out.size() == elements());
  convert_to_f32(dtype, bytes, out);
}

void convert_to_f32(DType dtype, std::span<const std::byte> bytes, std::span<float> out) {
  WAYBILL_CHECK(dtype != DType::kOther && bytes.size() == out.size() * (dtype == DType::kF32 ? 4 : 2));
  if (out.empty()) return;
  if (dtype == DType::kF32) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes.data() + 2 * i, sizeof half);
    out[i] = dtype == DType::kBf16 ? std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16)
                                   : _cvtsh_ss(half);
  }
}

Result<Safetensors> Safetensors::open(const std::filesystem::path& path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return std::unexpected(file.error());
  Safetensors out;
  out.name_ = path.string();
  out.file_ = std::move(*file);
  if (Status read = out.read_header(out.file_.bytes()); !read) return std::unexpected(read.error());
  return out;
}

Result<Safetensors> Safetensors::parse(std::span<const std::byte> bytes, std::string_view name) {
  Safetensors out;
  out.name_ = name;
  if (Status read = out.read_header(bytes); !read) return std::unexpected(read.error());
  return out;
}

Status Safetensors::read_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthBytes) {
    return corrupt(name_, fmt::format("it has {} bytes, which is no safetensors file", bytes.size()));
  }
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  const std::size_t after_length = bytes.size() - kLengthBytes;
  if (header_bytes > kMaxHeaderBytes || header_bytes > after_length) {
    return corrupt(name_,
                   fmt::format("its header should have {} bytes, but the file has {}: it is truncated, "
                               "or not a safetensors file",
                               header_bytes, after_length));
  }
  const auto header = bytes.subspan(kLengthBytes, header_bytes);
  const auto data = bytes.subspan(kLengthBytes + header_bytes);
  const auto document = parse_json({reinterpret_cast<const char*>(header.data()), header.size()},
                                   fmt::format("the header of {}", name_));
  if (!document) return std::unexpected(document.error());
  const json::object* object = document->if_object();
  if (object == nullptr) return corrupt(name_, "its header is not a JSON object");

  struct Range {
    std::size_t begin, end;
    std::string_view name;
  };
  std::vector<Range> ranges;
  for (const json::key_value_pair& member : *object) {
    const std::string_view name(member.key().data(), member.key().size());
    if (name == "__metadata__") continue;
    Result<Entry> entry = read_entry(name_, name, member.value(), data);
    if (!entry) return std::unexpected(entry.error());
    ranges.push_back({entry->begin, entry->end, name});
    tensors_.emplace(name, std::move(entry->tensor));
  }
  std::ranges::sort(ranges, {}, [](const Range& r) { return std::pair(r.begin, r.end); });
  std::size_t end = 0;
  for (const Range& range : ranges) {
    if (range.begin < end)
      return corrupt(name_, fmt::format("{} overlaps another tensor", quoted(range.name)));
    if (range.begin > end)
      return corrupt(name_, fmt::format("there is a hole before {}", quoted(range.name)));
    end = range.end;
  }
  if (end != data.size()) {
    return corrupt(name_, fmt::format("{} bytes follow the last tensor", data.size() - end));
  }
  return {};
}

bool Safetensors::contains(std::string_view name) const { return tensors_.contains(std::string(name)); }

Result<Tensor> Safetensors::tensor(std::string_view name, std::span<const std::size_t> shape) const {
  const auto found = tensors_.find(std::string(name));
  if (found == tensors_.end()) {
    return fail(ErrorCode::kNotFound, fmt::format("{} has no tensor {}", name_, quoted(name)));
  }
  const Tensor& tensor = found->second;
  if (!std::ranges::equal(tensor.shape, shape)) {
    return fail(ErrorCode::kCorrupt,
                fmt::format("{}: {} has the shape [{}], but config.json asks for [{}]", name_, quoted(name),
                            fmt::join(tensor.shape, ", "), fmt::join(shape, ", ")));
  }
  if (tensor.dtype == DType::kOther) {
    return fail(
        ErrorCode::kUnsupported,
        fmt::format("{}: {} is not F32, F16 or BF16; save the model as one of these", name_, quoted(name)));
  }
  return tensor;
}

}  // namespace waybill::embed
