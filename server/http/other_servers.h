// Requests for files that another server of the cluster has (docs/design/053-http-in-clusters.md).
#ifndef H5MIRROR_SERVER_HTTP_OTHER_SERVERS_H_
#define H5MIRROR_SERVER_HTTP_OTHER_SERVERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/cluster/ownership.h"
#include "server/http/message.h"

namespace h5mirror::server {

// The key of a query by which a redirect tells its target why the request comes:
// "NODE:EPOCH:CELL". The target takes it as news of the cell, so redirects end.
inline constexpr std::string_view kSentKey = "sent";

struct Sent {
  std::string node;    // the ID of the server that the request was sent to
  uint64_t epoch = 0;  // at which that one owns the cell
  std::string cell;

  bool operator==(const Sent&) const = default;
};
std::string Format(const Sent& sent);
// nullopt: `text` has another form. IDs have no colon.
std::optional<Sent> ParseSent(std::string_view text);

// Where the list of a directory goes on in a cluster: the name of the last file, or a cell's
// directory with a slash, whose files come next.
struct ListPlace {
  size_t cell = 0;         // its number
  std::string after = {};  // a file's name; empty: from the cell's beginning
};

// Thread-safe.
class OtherServers {
 public:
  // Null: this server is in no cluster. Must outlive this.
  explicit OtherServers(Ownership* cells) : cells_(cells) {}

  // The answer to a request whose call ended with `status`: 307 to the server that has the file, if
  // `status` names one; else ErrorAnswer(). 503 if no server has the file at the moment, or its
  // server has no usable HTTP address. Not usable: an address without TLS for a request that came
  // by TLS, and the address that redirected to this server.
  HttpAnswer ErrorOrRedirect(const HttpRequest& request, const absl::Status& status) const;

  // The cells below `directory`, in the order of their files' names: "a-b" comes before "a", as
  // "a-b/f" comes before "a/f". Empty: the directory lies in one cell, or in none, or this server
  // is in no cluster. kUnavailable: it does not know its cells yet.
  absl::StatusOr<std::vector<std::string>> CellsBelow(const std::string& directory) const;
  // True: no server has the file at the moment, but one will soon. `status`: that of a call.
  bool IsOnItsWay(const absl::Status& status) const;

 private:
  Ownership* const cells_;
};

// Of a page token. Past the end: cells.size().
ListPlace PlaceOf(const std::vector<std::string>& cells, const std::string& page_token);
// The page token at the beginning of a cell.
std::string BeginOf(const std::string& cell);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_OTHER_SERVERS_H_
