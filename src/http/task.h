// The coroutines of the event loops.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

namespace waybill::http {

// Runs on one event loop from beginning to end. With the loop's own executor type: no type erasure for each
// step.
template <class T = void>
using Task = boost::asio::awaitable<T, boost::asio::io_context::executor_type>;

}  // namespace waybill::http
