// The server's end of one stream. It does with the simulated network's events what
// server/mirror/mirror_stream.h does with gRPC's.
#ifndef H5MIRROR_TESTS_SIM_SERVER_CALL_H_
#define H5MIRROR_TESTS_SIM_SERVER_CALL_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "server/mirror/session.h"
#include "tests/sim/server.h"

namespace h5mirror::sim {

class ServerCall final : public server::SessionOutput,
                         public std::enable_shared_from_this<ServerCall> {
 public:
  // The answers to the client; not called any more once the call is gone.
  struct Answers {
    std::function<void(const v1::MirrorFileResponse&)> response;
    std::function<void(const absl::Status&)> ended;
    std::function<void()> vanished;
  };

  static std::shared_ptr<ServerCall> Begin(Server& server, Answers answers);
  ~ServerCall() override;

  // One encoded request; a half-close; the connection broke.
  void OnMessage(std::string bytes);
  void OnHalfClose();
  void OnBroken();
  // The server has died.
  void Vanish();
  void OnTimer();
  void OnStop();
  bool over() const { return over_; }
  // Of the file; empty before the open.
  const std::string& name() const { return name_; }

  // SessionOutput.
  void Send(v1::MirrorFileResponse response) override;
  void Finish(const absl::Status& status) override;
  absl::Status Require(const server::Need& /*need*/, std::string /*claimed*/) override {
    return absl::OkStatus();
  }

 private:
  ServerCall(Server& server, Answers answers);
  void Next();
  void Handle(const std::string& bytes);
  void Tap(const rpc::DecodedRequest& request);
  void Tap(const v1::MirrorFileResponse& response);

  Server& server_;
  const Answers answers_;
  std::shared_ptr<server::Session> session_;
  // nullopt: the half-close.
  std::deque<std::optional<std::string>> inbox_;
  bool opening_ = false;
  bool over_ = false;

  // The file of the stream, as seen from outside.
  std::string name_;
  Bytes16 file_id_{};
  std::map<uint64_t, int64_t> client_ns_;  // by barrier
};

}  // namespace h5mirror::sim

#endif  // H5MIRROR_TESTS_SIM_SERVER_CALL_H_
