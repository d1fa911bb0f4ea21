// Tensors in a safetensors file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace waybill::embed {

enum class DType : std::uint8_t { kF32, kF16, kBf16, kOther /* known to the format, never used here */ };

// One tensor: a view into the file.
struct Tensor {
  DType dtype = DType::kF32;
  std::vector<std::size_t> shape;
  std::span<const std::byte> bytes;  // little-endian, row-major, as large as the shape says; any alignment

  [[nodiscard]] std::size_t elements() const noexcept;
  // Converts to float32. out.size() == elements(); dtype is not kOther.
  void copy_to(std::span<float> out) const;
};

// Numbers of a type other than kOther, as they lie in the file, to float32; out.size() is their number.
void convert_to_f32(DType dtype, std::span<const std::byte> bytes, std::span<float> out);

// The safetensors format (github.com/huggingface/safetensors, README): u64 header length, JSON header, data.
// Offsets, shapes and sizes are checked when the file is opened; overlaps, holes and repeated names are
// refused. Immutable and thread-safe.
class Safetensors {
 public:
  // Maps the file; only the header is read. Fails with kNotFound, kIo, kCorrupt, or kUnsupported (an element
  // type that this program does not know).
  [[nodiscard]] static Result<Safetensors> open(const std::filesystem::path& path);
  // For bytes already in memory; `bytes` must outlive the object. `name` is the file's name in messages.
  [[nodiscard]] static Result<Safetensors> parse(std::span<const std::byte> bytes, std::string_view name);

  // A tensor of floating-point numbers. kNotFound names the tensor; kCorrupt when the shape is not the
  // expected one; kUnsupported when its elements are not F32, F16 or BF16.
  [[nodiscard]] Result<Tensor> tensor(std::string_view name, std::span<const std::size_t> shape) const;
  [[nodiscard]] bool contains(std::string_view name) const;
  [[nodiscard]] std::size_t size() const noexcept { return tensors_.size(); }
  [[nodiscard]] const std::unordered_map<std::string, Tensor>& tensors() const noexcept { return tensors_; }
  // Where the tensors' bytes are; null when they were in memory already.
  [[nodiscard]] const MappedFile* file() const noexcept { return file_.bytes().empty() ? nullptr : &file_; }
  // Gives the memory of what was read back to the system; it comes in again when it is touched.
  void drop_pages() const noexcept { file_.drop_pages(); }

 private:
  [[nodiscard]] Status read_header(std::span<const std::byte> bytes);

  MappedFile file_;
  std::string name_;
  std::unordered_map<std::string, Tensor> tensors_;
};

}  // namespace waybill::embed
