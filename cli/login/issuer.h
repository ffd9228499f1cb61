// An issuer of tokens that a user logs in at: OpenID Connect Discovery, the device flow of RFC 8628
// and refresh tokens. h5mirror is a public client there, without a secret.
#ifndef H5MIRROR_CLI_LOGIN_ISSUER_H_
#define H5MIRROR_CLI_LOGIN_ISSUER_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace h5mirror::tools {

struct IssuerEndpoints {
  std::string token;
  std::string device;  // empty: the issuer has no device flow
};

struct IssuedTokens {
  std::string access_token;        // empty: there is a refresh token only
  std::string id_token = {};       // empty: none was given
  std::string refresh_token = {};  // the same
  std::optional<absl::Duration> lifetime = {};
};

// The user's next steps.
struct DeviceCode {
  std::string code;          // the code that the user types, or compares
  std::string url;           // where
  std::string complete_url;  // the same with the code in it; empty: none was given
};

// Each call waits some 40 s at most, takes answers up to 1 MiB, follows no redirect and checks the
// certificate. URLs are https; http only of a loopback address. Errors: those of CallHttp();
// kInvalidArgument: such an URL; kFailedPrecondition: the answer breaks the protocol;
// kUnauthenticated: the issuer refuses, in its own words.
class Issuer {
 public:
  // `ca_file`: PEM; empty: the system's.
  Issuer(std::string url, std::string ca_file)
      : url_(std::move(url)), ca_file_(std::move(ca_file)) {}

  absl::StatusOr<IssuerEndpoints> Discover() const;

  // Shows the code by `show`, then asks until the user has agreed. `wait` sleeps, and is false
  // when the user wants no more. kCancelled: that; kDeadlineExceeded: the code has expired.
  absl::StatusOr<IssuedTokens> LogInByDevice(const IssuerEndpoints& endpoints,
                                             const std::string& client_id, const std::string& scope,
                                             const std::function<void(const DeviceCode&)>& show,
                                             const std::function<bool(absl::Duration)>& wait) const;

  // The refresh token may count once only: a new one is in the answer then.
  absl::StatusOr<IssuedTokens> Refresh(const std::string& token_endpoint,
                                       const std::string& client_id,
                                       const std::string& refresh_token) const;

 private:
  using Fields = std::vector<std::pair<std::string_view, std::string>>;
  struct Answer;

  absl::StatusOr<Answer> Post(const std::string& url, const Fields& fields) const;

  const std::string url_;
  const std::string ca_file_;
};

// The "exp" of a JWT, which is not verified; nullopt: `token` is no JWT.
std::optional<absl::Time> ExpiryOf(std::string_view token);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_LOGIN_ISSUER_H_
