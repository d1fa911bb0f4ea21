// `waybill bench encoder`, below `waybill bench`.
#pragma once

namespace CLI {
class App;
}

namespace waybill::cli {

void add_bench_encoder(CLI::App& parent);

}  // namespace waybill::cli
