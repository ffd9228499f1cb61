// One request and its answer on a connection of libmicrohttpd.
//
// The library's threads only copy bytes. A worker finds the answer, and makes the parts of a body.
// Meanwhile the connection is suspended, and holds no thread.
#ifndef H5MIRROR_SERVER_HTTP_EXCHANGE_H_
#define H5MIRROR_SERVER_HTTP_EXCHANGE_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/calls/call.h"
#include "server/http/http_caller.h"
#include "server/http/live_count.h"
#include "server/http/message.h"

struct MHD_Connection;
struct MHD_Response;

namespace h5mirror::server {

// Thread-safe. Shared by the library's connection, by workers, and by the callers that may end it.
class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  // Finds the answer. May wait for a disk.
  using Handler = std::function<HttpAnswer(HttpRequest& request)>;

  // The objects of `environment` must outlive `hold`. `fd`: the connection's.
  Exchange(LiveCount::Hold hold, const ServiceEnvironment& environment, MHD_Connection* connection,
           int fd)
      : hold_(std::move(hold)),
        environment_(environment),
        fd_(fd),
        started_(environment.clock.Monotonic()),
        connection_(connection) {}

  // ---- Of the library's thread ----

  // Begins: suspends the connection until a worker has called `handler`. False: it must end.
  bool Start(HttpRequest request, std::shared_ptr<const HttpCallSource> source, Handler handler);
  bool has_started() const;
  // Gives the library the answer once it is there. False: the connection must end.
  bool Answer();
  // The next bytes of the body: how many, or one of the codes of MHD_ContentReaderCallback.
  ssize_t Give(absl::Span<char> out);
  // The library has finished the exchange. `was_whole`: all of the answer was sent.
  void Finish(bool was_whole);

  // ---- Of any thread ----

  // Ends the exchange: nothing more is sent, and the connection is never suspended again.
  void End(const absl::Status& why);
  // The same, and cuts the connection: its client does not read.
  void Cut();
  // Ends the exchange if it has waited too long for munged, the name service or a worker.
  void OnTimer();
  // Ends a stream of events whose client has hung up. The library does not notice that while the
  // connection is suspended.
  void EndIfGone();

  // The longest wait for an answer before the caller is known.
  static constexpr absl::Duration kAwaitMax = absl::Seconds(5);

 private:
  bool has_ended() const;
  // The first part of a body, made by the worker that found the answer.
  struct Beginning {
    HttpPart part = {};
    bool is_whole = false;
    absl::Status failed = {};  // then the answer tells of it
  };
  Beginning BeginBody(HttpAnswer& answer);
  MHD_Response* NewResponse(HttpAnswer& answer, bool has_stream, std::optional<HttpPart> whole);
  bool Suspend() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Resume() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Find(const Handler& handler);
  void MakeSoon() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Make();

  const LiveCount::Hold hold_;  // the first: it ends last
  const ServiceEnvironment environment_;
  const int fd_;
  const absl::Duration started_;

  // A thread that holds it takes no lock of Callers: those are held over Cut(). Nor does it do
  // anything with a response: the library holds the lock of a response over Give().
  mutable absl::Mutex mutex_;
  MHD_Connection* connection_ ABSL_GUARDED_BY(mutex_);  // null: the library is done with it
  bool has_started_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_known_ ABSL_GUARDED_BY(mutex_) = false;  // or a worker is about to find that it is not
  bool is_suspended_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);  // not OK: by End()

  HttpRequest request_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const HttpCallSource> source_ ABSL_GUARDED_BY(mutex_);
  std::optional<HttpAnswer> answer_ ABSL_GUARDED_BY(mutex_);
  // The worker that makes a part has taken it.
  std::unique_ptr<HttpStream> stream_ ABSL_GUARDED_BY(mutex_);
  bool has_stream_ ABSL_GUARDED_BY(mutex_) = false;
  // A body that one part holds. The library sends it from there.
  std::optional<HttpPart> whole_ ABSL_GUARDED_BY(mutex_);
  uint64_t whole_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // of it, also once the library has it
  HttpPart part_ ABSL_GUARDED_BY(mutex_);             // that is being sent
  size_t part_at_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<HttpPart> next_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> last_ ABSL_GUARDED_BY(mutex_);  // no part follows
  uint64_t sent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_EXCHANGE_H_
