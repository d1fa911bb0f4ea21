// "did you mean ...": the nearest of the names that would have been right.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace waybill {

// The candidate within a third of the word's length in edits (insert, delete, replace, swap), or empty.
[[nodiscard]] std::string_view closest_name(std::string_view word,
                                            std::span<const std::string_view> candidates);

// "; did you mean \"x\"?" or empty.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace waybill
