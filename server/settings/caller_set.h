// The callers that a table of the configuration is for: its keys `users` and `groups`.
#ifndef H5MIRROR_SERVER_SETTINGS_CALLER_SET_H_
#define H5MIRROR_SERVER_SETTINGS_CALLER_SET_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace h5mirror::server {

// One of `users` or of `groups`; all callers, where both are empty. A user is "anna", "unix:anna",
// "cert:anna", "jwt:anna", "munge:anna" or "token:anna"; without an issuer, of any.
struct CallerSet {
  const std::vector<std::string>& users;
  const std::vector<std::string>& groups;

  bool is_for_all() const { return users.empty() && groups.empty(); }
  // A caller of that name and issuer ("unix"; empty: it has no name), in those groups.
  bool Takes(std::string_view name, std::string_view issuer,
             const std::vector<std::string>& its_groups) const;
  // True: this set takes each caller that `other` takes. False: it does not, or that is unknown.
  bool Covers(const CallerSet& other) const;
};

// Adds a user or a group. kInvalidArgument: the name is empty or too long.
absl::Status AddCallerName(std::string_view text, std::vector<std::string>& names);

// `["anna", "bob"]`, as in the configuration.
std::string ListOfNames(const std::vector<std::string>& names);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_CALLER_SET_H_
