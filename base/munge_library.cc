#include "base/munge_library.h"

#include <dlfcn.h>
#include <munge.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <memory>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

constexpr std::string_view kPrefix = "MUNGE:";

// The functions of libmunge that we call.
struct Munge {
  decltype(&::munge_encode) encode = nullptr;
  decltype(&::munge_decode) decode = nullptr;
  decltype(&::munge_strerror) strerror = nullptr;
  decltype(&::munge_ctx_create) ctx_create = nullptr;
  decltype(&::munge_ctx_destroy) ctx_destroy = nullptr;
  decltype(&::munge_ctx_get) ctx_get = nullptr;
  decltype(&::munge_ctx_set) ctx_set = nullptr;
};

template <typename Function>
bool Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// A loaded library stays loaded.
const Munge* Load() {
  static Munge munge;
  void* const library = dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL);
  const bool has_all = library != nullptr && Find(library, "munge_encode", munge.encode) &&
                       Find(library, "munge_decode", munge.decode) &&
                       Find(library, "munge_strerror", munge.strerror) &&
                       Find(library, "munge_ctx_create", munge.ctx_create) &&
                       Find(library, "munge_ctx_destroy", munge.ctx_destroy) &&
                       Find(library, "munge_ctx_get", munge.ctx_get) &&
                       Find(library, "munge_ctx_set", munge.ctx_set);
  return has_all ? &munge : nullptr;
}

absl::StatusOr<const Munge*> Library() {
  static const Munge* const munge = Load();
  if (munge != nullptr) return munge;
  return absl::FailedPreconditionError(
      "credentials of munge need libmunge.so.2, which is not there: apt install libmunge2");
}

struct Free {
  void operator()(void* memory) const { free(memory); }
};

// One question to munged.
class Context {
 public:
  explicit Context(const Munge& munge) : munge_(munge), context_(munge.ctx_create()) {}
  ~Context() {
    if (context_ != nullptr) munge_.ctx_destroy(context_);
  }
  Context(const Context&) = delete;

  munge_ctx_t get() const { return context_; }
  bool Open(const std::string& socket) {
    if (context_ == nullptr) return false;
    return socket.empty() ||
           munge_.ctx_set(context_, MUNGE_OPT_SOCKET, socket.c_str()) == EMUNGE_SUCCESS;
  }
  // The time until the decoded credential expires. At most its time to live, whatever its host's
  // clock says.
  absl::Duration Left() const {
    int ttl = 0;
    time_t encoded = 0, decoded = 0;
    munge_.ctx_get(context_, MUNGE_OPT_TTL, &ttl);
    munge_.ctx_get(context_, MUNGE_OPT_ENCODE_TIME, &encoded);
    munge_.ctx_get(context_, MUNGE_OPT_DECODE_TIME, &decoded);
    const int64_t age = std::max<int64_t>(0, int64_t{decoded} - int64_t{encoded});
    return absl::Seconds(std::max<int64_t>(0, int64_t{ttl} - age));
  }

 private:
  const Munge& munge_;
  const munge_ctx_t context_;
};

absl::Status NoContext() { return absl::UnavailableError("libmunge has no memory: try again"); }

absl::Status Away(const Munge& munge, const std::string& socket, munge_err_t error) {
  return absl::UnavailableError(
      StrCat("munged does not answer at ", socket.empty() ? std::string("its socket") : socket,
             ": ", munge.strerror(error), "; look whether the service munge runs on this host"));
}

absl::Status Refused(std::string_view why) {
  return absl::UnauthenticatedError(StrCat("the credential of munge does not count: ", why));
}

absl::Status DecodeError(const Munge& munge, const std::string& socket, munge_err_t error) {
  switch (error) {
    case EMUNGE_SNAFU:
    case EMUNGE_NO_MEMORY:
    case EMUNGE_SOCKET:
    case EMUNGE_TIMEOUT:
      return Away(munge, socket, error);
    case EMUNGE_CRED_EXPIRED:
      return Refused("it has expired; make a new one");
    case EMUNGE_CRED_REWOUND:
      return Refused("it was made in the future: compare the clocks of both hosts");
    case EMUNGE_CRED_REPLAYED:
      return Refused(
          "it was used before, at another server of this host or before a restart; make a new one");
    case EMUNGE_CRED_INVALID:
      return Refused("munged here has another key than the one that made it");
    default:
      return Refused(munge.strerror(error));
  }
}

}  // namespace

bool IsMungeCredential(std::string_view text) {
  if (text.size() <= kPrefix.size() + 1 || !text.starts_with(kPrefix) || text.back() != ':') {
    return false;
  }
  text.remove_prefix(kPrefix.size());
  text.remove_suffix(1);
  return text.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") ==
         std::string_view::npos;
}

absl::Status CheckMungeLibrary() { return Library().status(); }

absl::StatusOr<std::string> EncodeMunge(const std::string& socket) {
  H5M_ASSIGN_OR_RETURN(const Munge* const munge, Library());
  Context context(*munge);
  if (!context.Open(socket)) return NoContext();
  char* text = nullptr;
  const munge_err_t error = munge->encode(&text, context.get(), kMungePayload.data(),
                                          static_cast<int>(kMungePayload.size()));
  const std::unique_ptr<char, Free> owner(text);
  if (error != EMUNGE_SUCCESS || text == nullptr) return Away(*munge, socket, error);
  return std::string(text);
}

absl::StatusOr<MungeClaim> DecodeMunge(const std::string& socket, const std::string& credential) {
  H5M_ASSIGN_OR_RETURN(const Munge* const munge, Library());
  Context context(*munge);
  if (!context.Open(socket)) return NoContext();
  void* payload = nullptr;
  int size = 0;
  MungeClaim claim;
  gid_t gid = 0;
  const munge_err_t error =
      munge->decode(credential.c_str(), context.get(), &payload, &size, &claim.uid, &gid);
  const std::unique_ptr<void, Free> owner(payload);
  if (error != EMUNGE_SUCCESS) return DecodeError(*munge, socket, error);
  if (payload != nullptr && size > 0) {
    claim.payload.assign(static_cast<const char*>(payload), static_cast<size_t>(size));
  }
  claim.left = context.Left();
  return claim;
}

}  // namespace h5mirror
