// Jobs performed by this gateway: the same call, later.
#pragma once

#include "jobs/performer.h"

namespace waybill::api {

class Gateway;

// Both outlive it. Thread-safe; a performance stays on its loop.
class JobPerformer final : public jobs::Performer {
 public:
  explicit JobPerformer(Gateway& gateway) : gateway_(gateway) {}

  // The status and the body are those that a client of the endpoint would have been given; of a stream that
  // broke off, the status of what broke it.
  http::Task<jobs::Performed> perform(jobs::Performance& performance) override;

 private:
  Gateway& gateway_;
};

}  // namespace waybill::api
