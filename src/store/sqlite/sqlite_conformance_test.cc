// SQLite passes the suite of all back ends.
#include "store/sqlite/sqlite_store.h"
#include "store/store_conformance_test.h"

namespace waybill::store {
namespace {

Backend sqlite() {
  return {"Sqlite", [](const std::filesystem::path& folder) {
            sqlite::SqliteOptions options;
            options.path = folder / "jobs.db";
            options.inline_bytes = 256;
            return sqlite::open_sqlite_store(options);
          }};
}

INSTANTIATE_TEST_SUITE_P(Sqlite, StoreConformance, testing::Values(sqlite()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace waybill::store
