// The HTTP door: connections, within limits, and their requests. It knows nothing of files.
#ifndef H5MIRROR_SERVER_HTTP_HTTP_DOOR_H_
#define H5MIRROR_SERVER_HTTP_HTTP_DOOR_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/calls/call.h"
#include "server/door/client_certificates.h"
#include "server/door/front_door.h"
#include "server/door/server_certificate.h"
#include "server/http/exchange.h"
#include "server/settings/config.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace h5mirror::server {

// Thread-safe, but for Open(), Start(), BeginStop() and AwaitEnd(), which one thread calls in this
// order.
class HttpDoor {
 public:
  // Binds config.http_listen. `certificate` and `clients`: null, where there is none; these and
  // the objects of `environment` must outlive this.
  // Errors: as FrontDoor::Open(); kInternal: the library does not start.
  static absl::StatusOr<std::unique_ptr<HttpDoor>> Open(const Config& config,
                                                        const ServiceEnvironment& environment,
                                                        ServerCertificate* certificate,
                                                        const ClientCertificates* clients,
                                                        Exchange::Handler handler);
  // Waits for all workers that are at an exchange.
  ~HttpDoor();

  void Start();
  // Accepts nothing more, ends all exchanges, and waits for the library's threads. These only copy
  // bytes.
  void BeginStop();
  // After BeginStop(): waits for workers that are at an exchange, for `timeout` at most.
  // kDeadlineExceeded: some still are. They use what the door was opened with.
  absl::Status AwaitEnd(absl::Duration timeout);
  // Looks for a renewed certificate, and ends requests that wait for too long. To be called several
  // times a second.
  void OnTimer();
  void TendUsers() { door_->TendUsers(); }

  // In the order of config.http_listen, with their real ports.
  const std::vector<std::string>& addresses() const { return addresses_; }
  const std::vector<int>& ports() const { return ports_; }
  DoorSample Sample() const { return {door_->Counts(), door_->Turns(), 0}; }

 private:
  // The library, with one certificate. It can take no other: a renewed one gets a new daemon, and
  // the old one serves its connections until they have gone.
  struct Daemon;
  struct Callbacks;  // of the library

  HttpDoor(const Config& config, const ServiceEnvironment& environment,
           ServerCertificate* certificate, const ClientCertificates* clients,
           Exchange::Handler handler);

  absl::StatusOr<std::unique_ptr<Daemon>> StartDaemon();
  // Ends its exchanges, and waits for its threads.
  void StopDaemon(Daemon& daemon);
  void TakeIn(OwnedFd fd);
  void RenewDaemon();
  void DropIdleDaemons();

  // Of a thread of the library. The codes are MHD_YES and MHD_NO.
  int OnRequest(Daemon& daemon, MHD_Connection* connection, const char* url, const char* method,
                void** holder);
  int Begin(const std::shared_ptr<Exchange>& exchange, MHD_Connection* connection, const char* url,
            const char* method);
  // `host`: that the request names, if any.
  bool IsForUs(const std::optional<std::string>& host, const Peer& peer) const;
  void Add(const std::shared_ptr<Exchange>& exchange, const Daemon* daemon);
  void Remove(const Exchange* exchange);
  // Those of one daemon; nullptr: of all.
  std::vector<std::shared_ptr<Exchange>> Running(const Daemon* daemon);

  const Config config_;
  const ServiceEnvironment environment_;
  ServerCertificate* const certificate_;
  const ClientCertificates* const clients_;
  const Exchange::Handler handler_;
  const std::shared_ptr<LiveCount> alive_ = std::make_shared<LiveCount>();  // exchanges
  std::shared_ptr<FrontDoor> door_;                                         // of exchanges too
  std::vector<std::string> addresses_;
  std::vector<int> ports_;
  std::atomic<bool> stopping_{false};
  static constexpr int kRenewRounds = 20;
  int rounds_ = 0;       // of OnTimer(), whose thread alone has it
  std::string refused_;  // the same: PEM that the library did not take, so that it is told once

  absl::Mutex daemons_mutex_;
  std::list<std::unique_ptr<Daemon>> daemons_ ABSL_GUARDED_BY(daemons_mutex_);  // the newest last
  absl::Mutex mutex_;
  struct RunningOne {
    std::weak_ptr<Exchange> exchange;
    const Daemon* daemon = nullptr;
  };
  absl::flat_hash_map<const Exchange*, RunningOne> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_HTTP_DOOR_H_
