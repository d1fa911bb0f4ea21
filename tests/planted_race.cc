// Two threads use an object of one thread: what the thread sanitizer must report, in the code of a part, or
// it sees nothing of the others either. Run by serve_threads_test.py.
#include <thread>

#include "http/request.h"

int main() {
  static waybill::http::Request request;
  const auto clear = [] { request.clear(); };
  std::thread one(clear), other(clear);
  one.join();
  other.join();
  return 0;
}
