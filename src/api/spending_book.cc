#include "api/spending_book.h"

#include <charconv>
#include <chrono>
#include <latch>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace waybill::api {
namespace {

constexpr std::string_view kPrefix = "spending/";
constexpr Duration kEvery = std::chrono::seconds(1);

std::string text_of(const upstream::CallerSpending& spent) {
  return fmt::format("{} {} {}", spent.day, spent.today, spent.this_month);
}

Result<upstream::CallerSpending> spending_of(std::string_view name, std::string_view text) {
  upstream::CallerSpending spent;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  const auto read = [&at, end](auto& value) {
    const auto [next, error] = std::from_chars(at, end, value);
    at = next != end && *next == ' ' ? next + 1 : next;
    return error == std::errc();
  };
  if (read(spent.day) && read(spent.today) && read(spent.this_month) && at == end) return spent;
  return fail(ErrorCode::kCorrupt,
              fmt::format("the store's \"{}\" is \"{}\", which is no spending", name, text.substr(0, 100)));
}

}  // namespace

struct SpendingBook::State : std::enable_shared_from_this<State> {
  State(CallerAccounts& of, jobs::Service& to, http::EventLoop& on) : accounts(of), service(to), loop(on) {}

  void write() {
    for (auto& [name, spent] : accounts.spending(std::chrono::system_clock::now())) {
      std::string text = text_of(spent);
      std::string& before = written[name];
      if (text == before || (before.empty() && spent.today == 0 && spent.this_month == 0)) continue;
      before = text;
      store::Remember fact{.name = std::string(kPrefix) + name, .text = std::move(text)};
      service.writer().commit(std::move(fact), loop,
                              [self = shared_from_this(), of = name](Result<bool> reply) {
                                if (!reply) self->written[of].clear();  // again, at the next turn
                              });
    }
  }
  void turn() {
    if (service.is_writable()) write();
    due->set(std::chrono::steady_clock::now() + kEvery);
  }

  CallerAccounts& accounts;
  jobs::Service& service;
  http::EventLoop& loop;
  std::map<std::string, std::string, std::less<>> written;  // by caller
  std::unique_ptr<http::Deadline> due;
};

SpendingBook::SpendingBook(CallerAccounts& accounts, jobs::Service& service, http::EventLoop& loop)
    : state_(std::make_shared<State>(accounts, service, loop)) {}

SpendingBook::~SpendingBook() { stop(); }

Status SpendingBook::restore(store::Store& store, CallerAccounts& accounts) {
  const auto facts = store.remembered(kPrefix);
  if (!facts) return std::unexpected(facts.error());
  std::map<std::string, upstream::CallerSpending, std::less<>> spent;
  for (const auto& [name, text] : *facts) {
    Result<upstream::CallerSpending> each = spending_of(name, text);
    if (!each) return std::unexpected(std::move(each.error()));
    spent.emplace(name.substr(kPrefix.size()), *each);
  }
  accounts.restore(std::move(spent));
  return {};
}

void SpendingBook::start() {
  started_ = true;
  state_->loop.post([state = state_] {
    state->due = std::make_unique<http::Deadline>(state->loop, [of = state.get()] { of->turn(); });
    state->turn();
  });
}

void SpendingBook::stop() {
  if (!std::exchange(started_, false)) return;
  std::latch ended(1);
  state_->loop.post([state = state_, &ended] {
    state->due.reset();
    state->write();
    ended.count_down();
  });
  ended.wait();
}

}  // namespace waybill::api
