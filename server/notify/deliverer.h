// The ways to tell a receiver of an event: web hook, command, mail.
#ifndef H5MIRROR_SERVER_NOTIFY_DELIVERER_H_
#define H5MIRROR_SERVER_NOTIFY_DELIVERER_H_

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/notify/event.h"
#include "server/settings/notify_rules.h"

namespace h5mirror::server {

// Thread-safe; constant.
class Deliverer {
 public:
  virtual ~Deliverer() = default;
  // Tries once, for some 35 s at most; less, if another thread sets `cancel`.
  // Errors: kInvalidArgument  the receiver has answered that it will never take this event.
  //         others            it has not arrived, as far as we know.
  virtual absl::Status Deliver(const Event& event, const std::atomic<bool>& cancel) const = 0;
};

// For a rule. Reads the secret file: kNotFound, kPermissionDenied and kInvalidArgument name the
// table and the file. `host`: this machine.
absl::StatusOr<std::unique_ptr<const Deliverer>> MakeDeliverer(const NotifyRule& rule,
                                                               std::string host);

// OK: this machine has the means of the rule: libcurl, or the program. kFailedPrecondition names
// the missing one.
absl::Status CheckTools(const NotifyRule& rule);

// A mail with its headers. Exposed for tests.
std::string MailOf(const NotifyRule& rule, const Event& event, std::string_view host);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_NOTIFY_DELIVERER_H_
