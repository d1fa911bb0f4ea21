// A store that is there, opened beside whoever uses it.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "store/sqlite/connection.h"

namespace waybill::store::sqlite {

// kNotFound, or as version_of() refuses; kUnsupported for an older version too.
[[nodiscard]] Result<std::unique_ptr<Connection>> open_existing(const std::filesystem::path& path);

}  // namespace waybill::store::sqlite
