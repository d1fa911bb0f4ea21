// SQLite passes the suite of all back ends.
#include "store/sqlite/sqlite_store.h"
#include "store/store_conformance_test.h"
#include "store/store_property_test.h"

namespace waybill::store {
namespace {

Backend sqlite() {
  return {"Sqlite", [](const std::filesystem::path& folder) {
            sqlite::SqliteOptions options;
            options.path = folder / "jobs.db";
            options.inline_bytes = 256;
            options.recent_keys = 8;
            return sqlite::open_sqlite_store(options);
          }};
}

const auto kName = [](const auto& one) { return one.param.name; };

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreConformance, testing::Values(sqlite()), kName);
INSTANTIATE_TEST_SUITE_P(Sqlite, StoreProperties, testing::Values(sqlite()), kName);

}  // namespace
}  // namespace waybill::store
