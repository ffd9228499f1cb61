// Where a client's certificate has the name of its user.
#ifndef H5MIRROR_SERVER_SETTINGS_NAME_PATTERN_H_
#define H5MIRROR_SERVER_SETTINGS_NAME_PATTERN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace h5mirror::server {

// A rule that finds a name in a certificate: "cn:${user}", "uri:spiffe://site/user/${user}",
// "dns:${user}.users.site", "email:${user}@site".
struct NamePattern {
  enum class Field { kCommonName, kUri, kDns, kEmail };
  Field field = Field::kCommonName;
  std::string before;  // `${user}`
  std::string behind;

  // kInvalidArgument: it has another form.
  static absl::StatusOr<NamePattern> Parse(std::string_view text);
  // The name that stands for ${user}; empty: the text does not fit, or the name has characters
  // other than letters, digits and `._-`.
  std::string NameIn(std::string_view text) const;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_NAME_PATTERN_H_
