#include "rpc/channel.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "h5mirror/v1/server.grpc.pb.h"
#include "rpc/munge_token.h"
#include "rpc/reading_channel.h"
#include "rpc/status.h"
#include "rpc/tls_mismatch.h"
#include "rpc/unix_socket_rights.h"

namespace h5mirror::rpc {
namespace {

constexpr int kLookaheadBytes = 16 << 20;
// One DATA frame per message; 2^24-1 is the largest that HTTP/2 allows (RFC 9113, 6.5.2).
constexpr int kHttp2FrameBytesMax = kMaxMessageBytes;

constexpr absl::Duration kTlsQuestionMax = absl::Seconds(2);

enum class WindowProbe { kOff, kOn };

grpc::ChannelArguments Arguments(const ClientOptions& options, WindowProbe probe) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, probe == WindowProbe::kOn ? 1 : 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kLookaheadBytes);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kHttp2FrameBytesMax);
  // A server that vanished without a word is noticed after 15 s; by a reader, which loses nothing
  // by another connection, after 7 s, where another server of a cluster may be asked.
  const bool hurries = probe == WindowProbe::kOn && !options.others.empty();
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, hurries ? 4'000 : 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, hurries ? 3'000 : 5'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  // Without data from us, gRPC stops after 2 pings; a stream that only waits needs them.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // Despite its name this is how long one attempt may take, TLS handshake included: a busy server
  // or a far one needs more than the backoff. A refused connection fails at once all the same.
  // Where another server of a cluster may be asked, it gets less.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, options.others.empty() ? 5'000 : 2'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // Retries keep a copy of the stream's messages.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return arguments;
}

std::shared_ptr<grpc::ChannelCredentials> Credentials(const ClientOptions& options) {
  if (options.ca_pem.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = options.ca_pem;
  ssl.pem_cert_chain = options.certificate_pem;
  ssl.pem_private_key = options.key_pem;
  return grpc::SslCredentials(ssl);
}

// gRPC tells why it cannot connect only to a call; this one never leaves the machine, because
// it does not wait for the channel.
std::string LastError(grpc::Channel& channel) {
  grpc::ClientContext context;
  context.set_wait_for_ready(false);
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Milliseconds(200)));
  // Borrowed: the stub lives no longer than this call.
  const std::shared_ptr<grpc::Channel> borrowed(&channel, [](grpc::Channel*) {});
  v1::GetServerResponse response;
  const grpc::Status status =
      v1::Server::NewStub(borrowed)->GetServer(&context, v1::GetServerRequest(), &response);
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ? status.error_message()
                                                              : "no answer";
}

// Nothing listens there: the host's kernel, or the missing socket, says so.
bool IsRefusal(std::string_view error) {
  return absl::StrContains(ToAbsl(error), "Connection refused") ||
         absl::StrContains(ToAbsl(error), "No such file or directory");
}

// In gRPC's words a server of HTTP/1 answers, which may be the `http_listen` of h5mirrord.
const char* WayOut(std::string_view error) {
  return absl::StrContains(ToAbsl(error), "http1.x server")
             ? "; give the address of h5mirrord's `listen`, as HOST:7447, and not that of its "
               "`http_listen`"
             : "; check the address, and that h5mirrord runs there";
}

absl::Status NotConnected(const ClientOptions& options, absl::Duration waited,
                          std::string_view error) {
  const std::string origin = options.origin.empty() ? "" : StrCat(" (", options.origin, ")");
  return absl::UnavailableError(StrCat("no connection to ", options.server, origin, " within ",
                                       HumanDuration(waited), ": ", error, WayOut(error)));
}

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options) {
  return grpc::CreateCustomChannel(options.target, Credentials(options),
                                   Arguments(options, WindowProbe::kOff));
}

std::shared_ptr<grpc::Channel> MakeReadingChannel(const ClientOptions& options) {
  return grpc::CreateCustomChannel(options.target, Credentials(options),
                                   Arguments(options, WindowProbe::kOn));
}

std::string CredentialNow(const ClientOptions& options) {
  if (!IsMungeSource(options.token_source)) return options.token;
  return CurrentMungeToken(options.token_source, options.target, options.token);
}

std::string Authorize(const ClientOptions& options, grpc::ClientContext& context) {
  std::string token = CredentialNow(options);
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  return token;
}

bool RenewCredential(const ClientOptions& options, const std::string& shown,
                     const absl::Status& status) {
  return absl::IsUnauthenticated(status) && IsMungeSource(options.token_source) &&
         ReplaceMungeToken(options.token_source, options.target, shown);
}

absl::Status WaitConnected(grpc::Channel& channel, const ClientOptions& options,
                           absl::Duration timeout, absl::Duration refused_max) {
  H5M_RETURN_IF_ERROR(CheckMayOpenSocket(options));  // No wait gives a right.
  const absl::Time start = absl::Now();
  const absl::Time deadline = start + timeout;
  // A look at a connecting channel may become a call that the server refuses. So without a wait,
  // this looks only after a failure.
  const bool waits = refused_max > absl::ZeroDuration();
  absl::Time next_look = waits ? std::min(deadline, start + refused_max) : deadline;
  bool has_failed = false;
  std::string error = "no answer";  // The newest that is known.
  while (true) {
    const grpc_connectivity_state state = channel.GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) return absl::OkStatus();
    // A server that is away may come back; TLS on one side alone stays so.
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE && !std::exchange(has_failed, true)) {
      error = LastError(channel);
      const auto mismatch = FindTlsMismatch(options, error, std::min(timeout, kTlsQuestionMax));
      if (mismatch) return absl::UnavailableError(*mismatch);
      if (!waits && IsRefusal(error)) return NotConnected(options, absl::Now() - start, error);
    }
    if (channel.WaitForStateChange(state, absl::ToChronoTime(next_look))) continue;
    // A channel that connects just now tells nothing, and takes its time for it.
    if (channel.GetState(false) != GRPC_CHANNEL_CONNECTING) error = LastError(channel);
    if (next_look == deadline) return NotConnected(options, timeout, error);
    if (IsRefusal(error)) return NotConnected(options, refused_max, error);
    next_look = deadline;
  }
}

}  // namespace h5mirror::rpc
