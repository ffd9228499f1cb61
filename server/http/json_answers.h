// The answers of /v1/: JSON of the messages of gRPC, and events as they happen.
#ifndef H5MIRROR_SERVER_HTTP_JSON_ANSWERS_H_
#define H5MIRROR_SERVER_HTTP_JSON_ANSWERS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "server/calls/call.h"
#include "server/http/message.h"
#include "server/http/other_servers.h"
#include "server/services/files_service.h"
#include "server/services/versions_service.h"

namespace h5mirror::server {

// Thread-safe.
class JsonAnswers {
 public:
  // All must outlive this. `cells`: null, where this server is in no cluster.
  JsonAnswers(const ServiceEnvironment& environment, FilesService& files, VersionsService& versions,
              Ownership* cells)
      : environment_(environment), files_(files), versions_(versions), others_(cells) {}

  // /v1/files: `directory`, `state` (several), `match`, `page_size`, `page_token`.
  HttpAnswer List(const HttpRequest& request);
  // `path` is the part after "/v1/files/": NAME, NAME/versions or NAME/events. A slash of a name
  // may be written %2F, so that a file whose name ends in /events can be asked for.
  HttpAnswer OfFile(const HttpRequest& request, std::string_view path);

 private:
  using Body = absl::FunctionRef<absl::StatusOr<std::string>(const Principal&)>;

  // How large the JSON of a call may be.
  enum class Size : uint8_t {
    kRow,   // it is sent at once
    kPage,  // it may be sent for long, so it counts as a read until then
  };

  // One short call: admits the caller, runs `body`, checks the rights again, and answers with the
  // JSON.
  HttpAnswer Run(const HttpRequest& request, const char* method, const Needs& needs, Size size,
                 Body body);
  // One page of the cells in `query.directory`, in the order of names, up to the first cell of
  // another server. rpc::ElsewhereError(): the first cell is another server's.
  absl::StatusOr<v1::ListFilesResponse> ListAll(const HttpRequest& request,
                                                const Principal& principal,
                                                const v1::ListFilesRequest& query);
  absl::StatusOr<v1::ListFilesResponse> ListCells(const HttpRequest& request,
                                                  const Principal& principal,
                                                  const v1::ListFilesRequest& query,
                                                  const std::vector<std::string>& cells);
  HttpAnswer Versions(const HttpRequest& request, const std::string& name);
  HttpAnswer Events(const HttpRequest& request, const std::string& name);

  const ServiceEnvironment environment_;
  FilesService& files_;
  VersionsService& versions_;
  const OtherServers others_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_JSON_ANSWERS_H_
