// A web server for tests: canned answers on a loopback port.
#ifndef H5MIRROR_BASE_TESTING_HTTP_ANSWERER_H_
#define H5MIRROR_BASE_TESTING_HTTP_ANSWERER_H_

#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/owned_fd.h"

namespace h5mirror {

// Serves one connection after the other on a thread of its own, each with one request. Thread-safe.
class HttpAnswerer {
 public:
  HttpAnswerer();
  ~HttpAnswerer();
  HttpAnswerer(const HttpAnswerer&) = delete;

  // Adds the whole answer to a later request, "HTTP/1.1 200 OK\r\n...". An empty answer is never
  // sent: that connection stays open until the end of this object. If no answer is left: 200, "ok".
  void Answer(std::string bytes);
  // The same, with a body.
  void Answer(int code, const std::string& body);

  // "http://127.0.0.1:PORT/hook"
  std::string url() const;
  // The requests that have come, each with its headers and body.
  std::vector<std::string> requests() const;
  // Waits until `count` requests have come, or 20 s.
  bool WaitForRequests(size_t count) const;

 private:
  void Serve();
  void ServeOne(OwnedFd connection);

  OwnedFd listener_;
  int port_ = 0;
  mutable absl::Mutex mutex_;
  std::deque<std::string> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<OwnedFd> hanging_;  // used by the thread only
  std::thread thread_;
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_TESTING_HTTP_ANSWERER_H_
