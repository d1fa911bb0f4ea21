// Questions to a provider that are no calls: is it well, which models has it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/client_error.h"
#include "http/event_loop.h"
#include "http/resolver.h"
#include "http/task.h"
#include "upstream/provider.h"

namespace waybill::upstream {

struct InquiryAnswer {
  unsigned status = 0;
  std::string body;
};

// A GET of `path`, as Provider makes it, on a connection of its own. Of the body as
// much as `max_body`; a longer one is kMalformed; 0: it is not read. `provider` outlives it.
[[nodiscard]] http::Task<http::ClientResult<InquiryAnswer>> inquire(const Provider& provider,
                                                                    std::string path, std::size_t max_body,
                                                                    http::EventLoop& loop,
                                                                    http::Resolver& resolver,
                                                                    TimePoint deadline);

// The names of its models, as it calls them. kUpstreamFailed or kUpstreamTimeout with a sentence.
[[nodiscard]] http::Task<Result<std::vector<std::string>>> model_names_of(const Provider& provider,
                                                                          http::EventLoop& loop,
                                                                          http::Resolver& resolver,
                                                                          TimePoint deadline);

}  // namespace waybill::upstream
