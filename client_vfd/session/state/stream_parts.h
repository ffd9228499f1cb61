// The parts of a cut that joined streams bring to the server (JoinSession of mirror.proto), as the
// session's newest stream counts them.
//
// A part belongs to the next cut of one stream, the one whose ticket it was sent with. If that
// stream has sent a barrier since, or is another one, the part is not counted. Its bytes are then
// sent by the session itself.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_STREAM_PARTS_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_STREAM_PARTS_H_

#include <cstdint>
#include <optional>
#include <utility>

namespace h5mirror::vfd {

// Pure, not thread-safe.
class StreamParts {
 public:
  // Names a stream and its next cut.
  struct Place {
    uint64_t token = 0;
    uint64_t after_cuts = 0;
    bool operator==(const Place&) const = default;
  };

  // A stream begins: counts of the former stream are dropped.
  void Begin() { *this = StreamParts(); }
  // Which server a stream leads to: the one that is configured, or one that it has named instead.
  enum class Server { kConfigured, kElsewhere };
  // The server has taken the stream, with the lease `token`. `takes`: other streams may join it.
  // Other processes know only the configured server.
  void OnOpened(uint64_t token, bool takes, Server server) {
    token_ = token;
    takes_ = takes && server == Server::kConfigured;
  }
  // A barrier goes out. Returns the bytes of its cut that came as parts.
  uint64_t TakeForBarrier() {
    ++sent_cuts_;
    is_spoiled_ = false;
    return std::exchange(bytes_, 0);
  }
  void OnVisible() { ++visible_cuts_; }

  // A part of `place` failed. Frames with bytes of its cut may still be in flight.
  void Spoil(const Place& place) { is_spoiled_ = is_spoiled_ || Next() == place; }
  // True: the next cut must end with its own barrier, or the stream must end. Otherwise frames of
  // the failed part might arrive after newer bytes of a longer cut. Behind the barrier the server
  // refuses them.
  bool is_spoiled() const { return is_spoiled_; }

  // The token of the stream's lease; 0: the server has not taken the stream.
  uint64_t token() const { return token_; }
  // True: other streams may join this one.
  bool takes() const { return takes_; }
  // Unset: streams may not join, or the server may lack some of the cuts that were sent.
  std::optional<Place> Next() const {
    if (!takes_ || visible_cuts_ != sent_cuts_) return std::nullopt;
    return Place{token_, sent_cuts_};
  }
  // A part of `place` came. False: it is not of the next cut, and not counted.
  bool Add(const Place& place, uint64_t bytes) {
    if (Next() != place) return false;
    bytes_ += bytes;
    return true;
  }

 private:
  bool takes_ = false;
  uint64_t token_ = 0;
  uint64_t sent_cuts_ = 0;
  uint64_t visible_cuts_ = 0;
  uint64_t bytes_ = 0;
  bool is_spoiled_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_STREAM_PARTS_H_
