#include "jobs/store_watch.h"

#include <string>

namespace waybill::jobs {

void StoreWatch::failed(const Error& error) {
  if (error.code == ErrorCode::kStoreUnavailable) say(error.message);
}

void StoreWatch::look(bool is_writable) {
  if (is_writable) {
    doubted_ = false;
    if (told_.exchange(false)) log_.info("the store can be written again", {{"store", path_.string()}});
  } else if (doubted_.exchange(true)) {  // who was refused would have told why
    say("");
  }
}

void StoreWatch::say(const std::string& why) {
  if (told_.exchange(true)) return;
  log_.error("the store cannot be written: no jobs are accepted, none is begun",
             {{"store", path_.string()}, {"why", why}});
}

}  // namespace waybill::jobs
