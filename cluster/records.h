// The texts of the registry: servers, beats and cells (docs/design/049-cells.md). Texts are JSON
// objects, equal for equal records.
#ifndef H5MIRROR_CLUSTER_RECORDS_H_
#define H5MIRROR_CLUSTER_RECORDS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cluster/registry.h"

namespace h5mirror::cluster {

//   up <─> draining ──> gone
//    └────────┴──> dead ──> fenced
//
// The next epoch of a server begins after gone or fenced.
enum class ServerState : uint8_t {
  kUp,
  kDraining,  // it gives its cells away
  kGone,      // it ended in order, without a cell
  kDead,      // others have given it up: it may do nothing more, and may not know that yet
  kFenced,    // it can do nothing more
};

struct ServerRecord {
  uint64_t epoch = 0;  // from 1 on
  ServerState state = ServerState::kUp;
  std::string listen;                  // its address for clients, "host:port"
  std::string session;                 // the uuid of its session in CephFS; empty where it has none
  std::vector<std::string> addresses;  // in Ceph, of all of its clients: what is fenced
  // The uuids of further sessions in CephFS, one for each cell that it opened.
  std::vector<std::string> mounts = {};
  uint64_t seq = 0;          // rises with each change that this server makes in one life
  std::string version = {};  // its release; empty: it does not tell
  // Where it answers HTTP, "https://host:port"; empty: nowhere, or it does not tell.
  std::string http = {};
  std::string later = {};  // as CellRecord

  bool operator==(const ServerRecord&) const = default;
};

// Up or draining: it may serve, its beats go on, and others watch it.
bool IsAlive(ServerState state);
// Gone or fenced: it writes nothing more, so its cells may be claimed.
bool IsOver(ServerState state);

struct BeatRecord {
  uint64_t epoch = 0;   // of the server
  uint64_t number = 0;  // no two beats of an epoch have the same

  bool operator==(const BeatRecord&) const = default;
};

//   free ──> opening ──> served ──> draining ──> free
//               ^ claimed in any state from a server that is over
enum class CellState : uint8_t {
  kFree,
  kOpening,   // its owner recovers it; nobody answers
  kServed,    // its owner answers
  kDraining,  // its owner closes it; nobody answers
};

struct CellRecord {
  CellState state = CellState::kFree;
  std::string owner;         // the ID of a server; of a free cell: the last one
  uint64_t owner_epoch = 0;  // the owner's, at its claim
  uint64_t epoch = 0;        // rises with each claim; 0: never claimed
  uint64_t seq = 0;          // rises with each change of this record
  bool is_clean = false;     // its last owner closed it in order: nothing is to be recovered
  // The fields that a later release has written and this one does not know: a JSON object, or
  // empty. A change of the record keeps them.
  std::string later = {};

  bool operator==(const CellRecord&) const = default;
};

// An operator's request to a server. It counts for one life of that server.
enum class DrainWish : uint8_t {
  kNone,  // to serve cells
  kStay,  // to hand its cells over, and to run on without any
  kExit,  // to hand them over, and to end in order
};
struct DrainRecord {
  uint64_t epoch = 0;  // of the server
  DrainWish wish = DrainWish::kNone;

  bool operator==(const DrainRecord&) const = default;
};

// The server that an operator wants for a cell. The request ends when the epoch of the cell or of
// the server changes.
struct MoveRecord {
  std::string to;         // the ID of a server
  uint64_t epoch = 0;     // of the cell
  uint64_t to_epoch = 0;  // of the server; 0: any, as older releases wrote it

  bool operator==(const MoveRecord&) const = default;
};

std::string Encode(const ServerRecord& record);
std::string Encode(const BeatRecord& record);
std::string Encode(const CellRecord& record);
std::string Encode(const DrainRecord& record);
std::string Encode(const MoveRecord& record);
// kDataLoss quotes a text that Encode() does not give. Fields of later releases are kept in servers
// and cells, and ignored in the others: those are replaced as a whole.
absl::StatusOr<ServerRecord> DecodeServer(std::string_view text);
absl::StatusOr<BeatRecord> DecodeBeat(std::string_view text);
absl::StatusOr<CellRecord> DecodeCell(std::string_view text);
absl::StatusOr<DrainRecord> DecodeDrain(std::string_view text);
absl::StatusOr<MoveRecord> DecodeMove(std::string_view text);

// The names of the texts.
std::string ServerName(std::string_view id);
std::string BeatName(std::string_view id);
std::string CellName(std::string_view cell);
std::string DrainName(std::string_view id);
std::string MoveName(std::string_view cell);

// The whole registry, decoded, with the texts as they were read: compare-and-set wants those.
struct ClusterView {
  std::map<std::string, ServerRecord> servers;  // by ID
  std::map<std::string, BeatRecord> beats;      // by ID
  std::map<std::string, CellRecord> cells;      // by directory; "" is the root
  std::map<std::string, DrainRecord> drains;    // by ID
  std::map<std::string, MoveRecord> moves;      // by directory of the cell
  RegistryView texts;

  // Null: there is none.
  const ServerRecord* FindServer(const std::string& id) const;
  const CellRecord* FindCell(const std::string& cell) const;
  // The wish for the present life of a server.
  DrainWish WishFor(const std::string& id) const;
  // The server that is up and that `cell` is to be handed over to; empty: there is none.
  std::string MovesTo(const std::string& cell) const;
};
// Names of other kinds are ignored. kDataLoss names the text.
absl::StatusOr<ClusterView> DecodeView(RegistryView texts);

// The numbers of a new ownership: no epoch is given twice.
void RaiseEpoch(CellRecord& record);

// A cell's directory: "" or a relative path of one or more names, without "." and "..", and no name
// that begins with ".h5mirror". kInvalidArgument.
absl::Status CheckCellDirectory(std::string_view directory);
// A server's ID: 1 to 64 letters, digits, '-', '_' or '.'. kInvalidArgument.
absl::Status CheckServerId(std::string_view id);

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_RECORDS_H_
