// Signals are for the thread that waits for them, not for whoever is computing.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace waybill {

// Blocks all signals on this thread while it lives; threads that are started meanwhile keep them blocked.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace waybill
