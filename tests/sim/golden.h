// The promises made, and whether they are kept. It listens at the server's end of each stream, and
// looks into the store: the client's belief is no evidence.
#ifndef H5MIRROR_TESTS_SIM_GOLDEN_H_
#define H5MIRROR_TESTS_SIM_GOLDEN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/hex.h"
#include "onion_store/store.h"
#include "tests/sim/local_file.h"
#include "tests/sim/world.h"

namespace h5mirror::sim {

class Golden {
 public:
  explicit Golden(World& world) : world_(world) {}

  // Whether each commit that changed something is a version, or only some are.
  enum class Versions : uint8_t { kEachCommit, kSome };
  void ExpectVersions(Versions versions) { expected_ = versions; }

  void Add(std::shared_ptr<LocalFile> file) { files_.push_back(std::move(file)); }
  const std::vector<std::shared_ptr<LocalFile>>& files() const { return files_; }
  LocalFile* FileOf(const std::string& name) const;

  // A client asks for the time, maybe for a cut that it closes now. The bytes of all files are
  // noted under that time, which is given only once.
  void NoteTime(int64_t time_ns);
  bool Knows(int64_t time_ns) const { return images_.count(time_ns) != 0; }

  // The server has made a cut of a barrier whose client time was `client_ns`, and says so.
  void OnVisible(const std::string& name, const Bytes16& file_id, int64_t cut, int64_t client_ns);
  // The server says that it is durable.
  void OnDurable(const std::string& name, const Bytes16& file_id, int64_t cut, int64_t version,
                 bool unchanged);

  // All that was acked is there and has its bytes. `server` has recovered.
  void Check(store::Store& server);
  // The head's bytes are those of the newest durable cut, which has been applied.
  void CheckHead(const LocalFile& file, const store::FileInfo& info, const std::string& head);
  // The size of the newest durable cut, in bytes; 0: no client made it.
  size_t SizeOf(const store::FileInfo& info) const {
    const ImagePtr newest = NewestOf(info);
    return newest == nullptr ? 0 : newest->bytes.size();
  }
  // The image of the newest durable cut; null: no client made it.
  ImagePtr NewestOf(const store::FileInfo& info) const;

 private:
  struct History {
    std::map<int64_t, ImagePtr> cuts;
    std::map<int64_t, ImagePtr> versions;  // that a client was told of
    int64_t durable_cut = 0;
  };

  void CheckFile(store::Store& server, const LocalFile& file);
  void CheckVersions(store::File& file, const History& history);

  World& world_;
  Versions expected_ = Versions::kEachCommit;
  std::vector<std::shared_ptr<LocalFile>> files_;
  std::map<int64_t, std::map<std::string, ImagePtr>> images_;  // by client time
  std::map<std::string, std::map<Bytes16, History>> histories_;
};

// "4096 bytes, crc 12345678".
std::string Summary(const std::string& bytes);

}  // namespace h5mirror::sim

#endif  // H5MIRROR_TESTS_SIM_GOLDEN_H_
