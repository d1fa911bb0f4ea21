// An HTTP server for tests: answers each request with what the test said, and remembers what was asked.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

namespace waybill::telemetry {

class FakeCollector {
 public:
  using Request = boost::beast::http::request<boost::beast::http::string_body>;

  // One raw answer for each connection, in order; the last one for all that follow. An empty one: the
  // connection is closed without an answer. "hang": it stays open without one, until the end.
  explicit FakeCollector(std::vector<std::string> answers)
      : answers_(std::move(answers)), acceptor_(loop_, {boost::asio::ip::address_v4::loopback(), 0}) {
    thread_ = std::thread([this] { serve(); });
  }
  ~FakeCollector() {
    stopping_ = true;
    boost::system::error_code ignored;
    boost::asio::ip::tcp::socket wake(loop_);
    wake.connect(acceptor_.local_endpoint(), ignored);
    thread_.join();
  }

  [[nodiscard]] std::string url() const {
    return fmt::format("http://127.0.0.1:{}", acceptor_.local_endpoint().port());
  }

  // Waits until so many requests have come.
  std::vector<Request> requests(std::size_t n) {
    std::unique_lock lock(mutex_);
    come_.wait_for(lock, std::chrono::seconds(60), [&] { return requests_.size() >= n; });
    return requests_;
  }

  static std::string answer(int status, const std::string& body = "{}", const std::string& headers = "") {
    return fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n{}\r\n{}", status, body.size(), headers, body);
  }

 private:
  void serve() {
    std::vector<boost::asio::ip::tcp::socket> held;
    for (std::size_t i = 0;; ++i) {
      boost::system::error_code error;
      boost::asio::ip::tcp::socket socket(loop_);
      acceptor_.accept(socket, error);
      if (stopping_ || error) return;
      boost::beast::flat_buffer buffer;
      Request request;
      boost::beast::http::read(socket, buffer, request, error);
      const std::string& text = answers_[std::min(i, answers_.size() - 1)];
      if (text == "hang") {
        held.push_back(std::move(socket));
      } else if (!text.empty()) {
        boost::asio::write(socket, boost::asio::buffer(text), error);
      }
      const std::scoped_lock lock(mutex_);
      requests_.push_back(std::move(request));
      come_.notify_all();
    }
  }

  const std::vector<std::string> answers_;
  boost::asio::io_context loop_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable come_;
  std::vector<Request> requests_;
  std::thread thread_;
};

}  // namespace waybill::telemetry
