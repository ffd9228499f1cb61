// The caller of a call, and its rights.
#ifndef H5MIRROR_SERVER_DOOR_AUTH_H_
#define H5MIRROR_SERVER_DOOR_AUTH_H_

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "onion_store/types.h"
#include "server/door/access_index.h"
#include "server/door/client_certificates.h"
#include "server/door/peer.h"
#include "server/door/unix_users.h"
#include "server/settings/token_file.h"

namespace h5mirror::server {

class CallGate;
class JsonWebTokens;
class MungeCredentials;
struct MungeIdentity;
struct TokenIdentity;

// A caller that the server has authenticated. store::Provenance has the caller's own account of
// itself.
struct Principal {
  enum class Issuer {
    kNone,         // the server asks for nothing, so the caller has no name
    kToken,        // the tokens file
    kUnix,         // the other end of a Unix socket
    kCertificate,  // the client's certificate
    kJwt,          // a token that the site's issuer has signed
    kMunge,        // a credential of munge
  };

  std::string name;
  Rights rights;  // to all files; RightsTo() narrows them
  Issuer issuer = Issuer::kNone;
  std::shared_ptr<const TokenEntry> token = nullptr;            // kToken
  uid_t uid = 0;                                                // kUnix, kMunge
  std::shared_ptr<const UnixUser> user = nullptr;               // kUnix, kMunge
  std::shared_ptr<const ClientIdentity> certificate = nullptr;  // kCertificate
  std::shared_ptr<const TokenIdentity> login = nullptr;         // kJwt
  std::shared_ptr<const MungeIdentity> munge = nullptr;         // kMunge
  std::optional<Peer> peer = std::nullopt;  // of a call that came over the network

  // Those of the host or of the login. They live as long as the principal.
  const std::vector<std::string>& groups() const;
};

// "token", "unix", "cert", "jwt", "munge"; "" without one.
std::string_view IssuerName(Principal::Issuer issuer);

// The principal as the owner of a file: "unix:anna". Empty: it can own none.
std::string OwnerName(const Principal& principal);

// For messages and the log: `token "node7"`, `user "anna"`, "a caller without a name".
std::string CallerName(const Principal& principal);

// One right that a call needs.
struct Need {
  Right right = Right::kRead;
  std::string file = {};  // empty: to any file
  // For the audit log, and no part of the check: the version that is named, and the name where
  // `file` is empty.
  int64_t version = 0;
  std::string shown = {};
};
using Needs = std::vector<Need>;
inline Needs AnyFile(Right right) { return {Need{right, ""}}; }
inline Needs OneFile(Right right, std::string file, int64_t version = 0) {
  return {Need{right, std::move(file), version}};
}

// Where a call came from.
struct CallerOrigin {
  std::optional<uid_t> uid = std::nullopt;  // the user at the other end of a Unix socket
  std::string_view grpc_peer = {};          // grpc::ServerContext::peer()
  std::string_view certificate_pem = {};    // that gRPC has verified; empty: none was shown
  bool is_peer_known = true;                // false: a token's addresses are not looked at
};

// kPermissionDenied names the caller, its rights and the one that is missing.
absl::Status CheckRight(const Principal& principal, Right right);

// Thread-safe.
class Authenticator {
 public:
  // Asks for no token of a file. Without tables every caller has all rights.
  Authenticator() : Authenticator(std::filesystem::path()) {}
  // Loads the tokens of a file. Errors as ReadTokenFile(); kInvalidArgument: it holds none.
  static absl::StatusOr<std::unique_ptr<Authenticator>> Load(const std::filesystem::path& path);

  // Reads the file again. On an error the tokens stay as they were.
  absl::Status Reload();
  // The [[access]] tables from now on; without any, none is looked at.
  void SetRules(std::vector<AccessRule> rules);
  bool has_rules() const;
  // Whether a table names an owner. Then a check of a file may wait for the disk.
  bool asks_owners() const;
  // Says whose the file of a name is. May wait for the disk. Thread-safe.
  using FindOwner = std::function<absl::StatusOr<store::FileOwner>(std::string_view file)>;
  // To be called before calls come. Without it nobody has a right that a table with an owner could
  // give or take.
  void SetOwners(FindOwner find_owner) { find_owner_ = std::move(find_owner); }
  // From now on certificates of clients count. `certificates` must outlive this. To be called
  // before calls come.
  void SetCertificates(const ClientCertificates* certificates) { certificates_ = certificates; }
  // The same for tokens that an issuer has signed.
  void SetLogins(const JsonWebTokens* logins) { logins_ = logins; }
  // The same for credentials of munge.
  void SetMunge(MungeCredentials* munge) { munge_ = munge; }
  // When the next token or certificate expires, or the calls of a signed token end.
  absl::Time NextExpiry() const;

  // `authorization` is the call's header, "Bearer TOKEN". All digests are compared in full, so that
  // the time taken tells nothing about a token. The first of these that is there decides: a token,
  // a certificate, where there are tables the user of a Unix socket. May verify a signature; no
  // lock is held meanwhile.
  // Errors: kUnauthenticated  no token, a malformed, unknown or expired one, or one that is not for
  //                           that address; a certificate that does not count; a user without a
  //                           name.
  //         kUnavailable      the user's name, or munged's answer, is not known yet.
  absl::StatusOr<Principal> Authenticate(std::optional<std::string_view> authorization,
                                         const CallerOrigin& origin = {}) const;

  // Where tables name owners, each of these may look up the owner of the file, also on the disk:
  // not for a thread that must not wait. `known`: the owner of a file without a name, such as a
  // removed one; nullptr: it is looked up.

  // The table that decides. nullptr: no table takes both, there are no tables, or the owner cannot
  // be looked up.
  std::shared_ptr<const AccessRule> RuleFor(const Principal& principal,
                                            std::string_view file) const;
  // The rights to one file: those that the caller's token, its files= and the first table for both
  // allow. None if the owner cannot be looked up. A missing file counts as the caller's own. Of a
  // table with `owner` it then has "write" and "delete" only, which can make it.
  Rights RightsTo(const Principal& principal, std::string_view file,
                  const store::FileOwner* known = nullptr) const;
  // Errors: kPermissionDenied  the right is missing; the caller has another one, so it may know.
  //         kNotFound          the caller has no right; the same whether the file exists or not. Or
  //                            the caller would have the right, and the file does not exist.
  //         kUnavailable       the owner cannot be looked up.
  absl::Status Check(const Principal& principal, const Need& need,
                     const store::FileOwner* known = nullptr) const;

  // OK: the caller has the right to all files. Calls that change the server or its cluster as a
  // whole need it. With tables, the first table for the caller that takes every name decides
  // (AccessIndex::FindForAll()). Does not wait.
  // Errors: kPermissionDenied  it has not, or its token is for some files only.
  absl::Status CheckAllFiles(const Principal& principal, Right right) const;
  // Whether the caller may have a right to a file below `directory` (empty: the root), by tables
  // and by its token's files=. True may be wrong; false is not. Waits for nothing.
  bool MayBelow(const Principal& principal, std::string_view directory) const;

  // OK: the caller is still known, and has all of `needs`. Errors: as Authenticate() and Check();
  // kUnavailable: some right could not be looked up, and no other is missing.
  absl::Status StillMay(const Principal& principal, absl::Span<const Need> needs) const;

  // True: the call's token decides about the caller. A token of a kind that is not configured is
  // ignored.
  bool LooksAt(std::string_view authorization) const;
  bool wants_tokens() const { return !path_.empty() || logins_ != nullptr || munge_ != nullptr; }
  // Whether Authenticate() has the answers of munged and of the name service. If not, AwaitCaller()
  // calls `then` once they may be there, as MungeCredentials::Await().
  bool KnowsCaller(std::optional<std::string_view> authorization) const;
  void AwaitCaller(std::string_view authorization, std::function<void()> then) const;
  // The user of a credential of munge that is known already.
  std::optional<uid_t> MungeUser(std::string_view authorization) const;
  // Users beside those of Unix sockets whose names and groups are needed.
  std::vector<uid_t> MungeUsers() const;
  size_t token_count() const;
  UnixUsers& users() const { return users_; }

  // The gate that is told of each call whose token is checked; nullptr: none. It must outlive all
  // calls.
  CallGate* gate() const { return gate_; }
  void set_gate(CallGate* gate) { gate_ = gate; }

 private:
  using Tokens = std::vector<std::shared_ptr<const TokenEntry>>;

  explicit Authenticator(std::filesystem::path path);

  absl::StatusOr<Principal> AuthenticateBearer(std::string_view authorization,
                                               const CallerOrigin& origin) const;
  absl::StatusOr<Principal> AuthenticateToken(std::string_view token,
                                              const CallerOrigin& origin) const;
  absl::StatusOr<Principal> AuthenticateLogin(std::string_view token,
                                              const CallerOrigin& origin) const;
  absl::StatusOr<Principal> AuthenticateUser(uid_t uid) const;
  absl::StatusOr<Principal> AuthenticateMunge(std::string_view credential,
                                              const CallerOrigin& origin) const;
  absl::Status NoToken() const;
  std::optional<std::string_view> MungeCredentialIn(std::string_view authorization) const;
  absl::StatusOr<Principal> AuthenticateCertificate(const CallerOrigin& origin) const;
  // The caller with its present token, name and groups.
  absl::StatusOr<Principal> Renewed(const Principal& principal) const;
  absl::StatusOr<Principal> RenewedToken(const Principal& principal) const;
  std::shared_ptr<const AccessIndex> rules() const;
  // The rule. `is_to_be_made`: it has `owner`, and decides about a missing file.
  struct Decision {
    const AccessRule* rule;  // null: none
    bool is_to_be_made = false;
  };
  struct FileRights {
    Rights now;
    Rights once_made;  // of a file that is there the same
  };
  absl::StatusOr<Decision> FindRule(const AccessIndex& index, const Principal& principal,
                                    std::string_view file, const store::FileOwner* known) const;
  // kUnavailable: the owner cannot be looked up.
  absl::StatusOr<FileRights> FindRights(const Principal& principal, std::string_view file,
                                        const store::FileOwner* known) const;

  const std::filesystem::path path_;  // empty: no tokens of a file
  CallGate* gate_ = nullptr;
  const ClientCertificates* certificates_ = nullptr;
  const JsonWebTokens* logins_ = nullptr;
  MungeCredentials* munge_ = nullptr;
  FindOwner find_owner_;
  mutable SystemClock clock_;
  mutable UnixUsers users_{clock_};
  mutable absl::Mutex mutex_;
  Tokens tokens_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const AccessIndex> rules_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_AUTH_H_
