// One job, as POST /v1/jobs has it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "api/job_source.h"
#include "base/result.h"
#include "store/command.h"
#include "upstream/json_scanner.h"

namespace waybill::api {

// `raw` is the job's object as it was sent: who sends another under the same key is told so. `index`: its
// place in the list that it came in; the list's key is then of all, each with its place.
// kInvalidInput, kNotFound and kPermissionDenied name the field.
[[nodiscard]] Result<store::Submit> read_job(std::string_view raw, std::optional<std::size_t> index,
                                             const JobSource& source);

// Of a text in which the scanner failed.
[[nodiscard]] std::unexpected<Error> malformed(const upstream::JsonScanner& json);
// Of what came without a key to a queue that asks for one.
[[nodiscard]] std::unexpected<Error> key_needed(const config::JobQueue& queue);

// Whether the queue of that name is there; kNotFound with the likely name.
[[nodiscard]] Result<std::shared_ptr<const config::JobQueue>> find_queue(std::string_view name,
                                                                         const jobs::Service& service);

}  // namespace waybill::api
