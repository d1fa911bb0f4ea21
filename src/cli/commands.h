// The subcommands, in the order of the help text. Each adds itself to the application; when it is the one
// chosen, its callback runs and throws CLI::RuntimeError with the exit code, or returns for 0.
#pragma once

namespace CLI {
class App;
}

namespace waybill::cli {

void add_route(CLI::App& app);
void add_serve(CLI::App& app);
void add_embed(CLI::App& app);
void add_jobs(CLI::App& app);
void add_dead_letters(CLI::App& app);
void add_queues(CLI::App& app);
void add_eval(CLI::App& app);
void add_fit(CLI::App& app);
void add_config(CLI::App& app);
void add_model(CLI::App& app);
void add_bench(CLI::App& app);
void add_store(CLI::App& app);
void add_import(CLI::App& app);
void add_completion(CLI::App& app);
void add_man(CLI::App& app);

}  // namespace waybill::cli
