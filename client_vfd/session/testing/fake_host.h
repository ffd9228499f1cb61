// A session's host, its streams and its file, for tests that play the servers.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_TESTING_FAKE_HOST_H_
#define H5MIRROR_CLIENT_VFD_SESSION_TESTING_FAKE_HOST_H_

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client_vfd/session/session.h"
#include "rpc/channel.h"
#include "rpc/frame_codec.h"

namespace h5mirror::vfd {

inline constexpr uint64_t kFakeLease = 7;
inline constexpr Bytes16 kFakeFileId = {1, 2, 3};

struct Question {
  std::string target;
  std::function<void(const ServerAnswer&)> answered;
};

// Takes each message. The test decides when the stream is writable again.
class FakeStream final : public Stream {
 public:
  FakeStream(std::string target, StreamOwner* owner) : target(std::move(target)), owner(owner) {}
  void Write(const grpc::ByteBuffer& message, Last /*last*/) override {
    is_writing = true;
    const auto request = rpc::DecodeRequest(message);
    const auto* decoded = request.ok() ? std::get_if<v1::MirrorFileRequest>(&*request) : nullptr;
    if (decoded == nullptr) return;
    if (decoded->has_open()) resumes = decoded->open().intent() == v1::INTENT_RESUME;
    if (decoded->has_barrier()) barriers.push_back(decoded->barrier().seq());
  }
  void HalfClose() override {}
  void Cancel() override { is_cancelled = true; }
  void Abandon() override { owner = nullptr; }
  std::string Peer() const override { return peer; }

  // The server takes all that is ready.
  void Drain() {
    do {
      is_writing = false;
      owner->OnWritable();
    } while (is_writing);
  }
  // `durable_seq`: of the session's barriers the newest that the server knows to be durable.
  void Open(uint64_t durable_seq = 0) {
    v1::MirrorFileResponse response;
    v1::SessionOpened& opened = *response.mutable_opened();
    opened.set_relation(resumes && durable_seq > 0 ? v1::RELATION_MATCH : v1::RELATION_NEW);
    opened.set_last_cut(static_cast<int64_t>(durable_seq));
    opened.set_durable_cut(static_cast<int64_t>(durable_seq));
    opened.set_durable_barrier_seq(durable_seq);
    opened.set_token(kFakeLease);
    opened.set_file_id(ToByteString(kFakeFileId));
    owner->OnResponse(response);
  }
  // Another writer holds the file.
  void OpenBusy(const std::string& holder) {
    v1::MirrorFileResponse response;
    response.mutable_opened()->set_relation(v1::RELATION_BUSY);
    response.mutable_opened()->set_state(holder);
    owner->OnResponse(response);
  }
  void AckDurable(uint64_t seq) {
    v1::MirrorFileResponse response;
    response.mutable_cut_durable()->set_seq(seq);
    response.mutable_cut_durable()->set_cut(static_cast<int64_t>(seq));
    owner->OnResponse(response);
  }

  // The server ends it.
  void End(const absl::Status& status) {
    StreamOwner* const ended = std::exchange(owner, nullptr);
    if (ended != nullptr) ended->OnEnded(status);
  }

  const std::string target;
  StreamOwner* owner;
  std::vector<uint64_t> barriers;  // the seqs of those that came
  std::string peer;
  bool resumes = false;   // its first message says so
  bool is_taken = false;  // for the test's own use
  bool is_writing = false;
  bool is_cancelled = false;
};

class FakeReader final : public FileReader {
 public:
  FakeReader() = default;
  // Borrows `fails`: the file cannot be read while it is set.
  explicit FakeReader(const bool* fails) : fails_(fails) {}

  absl::Status Read(Extent extent, char* out) const override {
    if (fails_ != nullptr && *fails_) return absl::InternalError("Input/output error");
    std::fill_n(out, extent.length, 'x');
    return absl::OkStatus();
  }
  absl::StatusOr<FileStat> Stat() const override { return FileStat(); }
  std::vector<Extent> DataExtents() const override { return {}; }

 private:
  const bool* const fails_ = nullptr;
};

class FakeHost final : public SessionHost {
 public:
  absl::Time Now() override { return now; }
  absl::Time TimeOfDay() override { return now; }
  Bytes16 RandomId() override { return {}; }  // Of no jitter.
  void Await(absl::Mutex& mutex, absl::FunctionRef<bool()> /*condition*/,
             absl::Time deadline) override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (pass == nullptr) {
      now = std::max(now, deadline);
      return;
    }
    mutex.Unlock();
    pass();
    mutex.Lock();
  }
  void Add(std::shared_ptr<Session> session) override { kept = std::move(session); }
  void Wake(Session* /*session*/) override {}
  std::shared_ptr<Session> Predecessor(const Session& /*session*/) override { return nullptr; }
  void WakeSuccessors(const Session& /*ended*/) override {}
  // It keeps its buffers for as long as the process lives.
  FramePool& pool() override {
    static auto* const pool = new FramePool(rpc::kMaxFrameBytes, 4, [] {});
    return *pool;
  }
  std::atomic<int64_t>& saved_bytes(const std::string& /*server*/) override { return saved_bytes_; }
  std::string NewestToken(const rpc::ClientOptions& options) override {
    return newest_token.empty() ? options.token : newest_token;
  }
  bool Suspect(const std::string& /*server*/) override { return false; }
  void SetSuspect(const std::string& /*server*/, bool /*suspect*/) override {}
  bool IsDoubtful(const std::string& target) override { return doubtful.contains(target); }
  void SetDoubtful(const std::string& target) override { doubtful.insert(target); }
  Stream* StartStream(const rpc::ClientOptions& options, StreamOwner* owner) override {
    return &streams.emplace_back(options.target, owner);
  }
  void DropChannel(const rpc::ClientOptions& options) override {
    dropped.push_back(options.target);
  }
  void AskServer(const rpc::ClientOptions& options, const std::string& /*name*/,
                 absl::Duration /*timeout*/,
                 std::function<void(const ServerAnswer&)> answered) override {
    questions.push_back({options.target, std::move(answered)});
  }

  absl::Time now = absl::FromUnixSeconds(1'000'000);
  std::function<void()> pass;  // what happens while a call of the program waits; it moves `now`
  std::shared_ptr<Session> kept;
  std::deque<FakeStream> streams;
  std::deque<Question> questions;
  std::vector<std::string> dropped;
  std::set<std::string> doubtful;
  std::string newest_token;  // empty: that of the options

 private:
  std::atomic<int64_t> saved_bytes_{0};
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_TESTING_FAKE_HOST_H_
