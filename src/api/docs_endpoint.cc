// GET /openapi.yaml and GET /docs, the same for a person.
#include "api/endpoint.h"
#include "api/openapi.h"

namespace waybill::api {

http::Task<Status> openapi(Gateway& /*gateway*/, Call& call) {
  call.response().content_type = "application/yaml";
  call.response().body = openapi_yaml();
  co_return Status{};
}

http::Task<Status> docs_page(Gateway& /*gateway*/, Call& call) {
  call.response().content_type = "text/html; charset=utf-8";
  call.response().body = openapi_page();
  co_return Status{};
}

}  // namespace waybill::api
