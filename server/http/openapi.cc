#include "server/http/openapi.h"

#include <string>

#include "absl/strings/str_replace.h"

namespace h5mirror::server {
namespace {

// Any operation's errors: $ERRORS below.
constexpr char kErrors[] = R"json("307": {"$ref": "#/components/responses/Elsewhere"},
     "400": {"$ref": "#/components/responses/E400"},
     "401": {"$ref": "#/components/responses/E401"},
     "403": {"$ref": "#/components/responses/E403"},
     "404": {"$ref": "#/components/responses/E404"},
     "409": {"$ref": "#/components/responses/E409"},
     "421": {"$ref": "#/components/responses/E421"},
     "429": {"$ref": "#/components/responses/E429"},
     "500": {"$ref": "#/components/responses/E500"},
     "503": {"$ref": "#/components/responses/E503"},
     "504": {"$ref": "#/components/responses/E504"})json";

// The conditions of a request for bytes, and its answers: $BYTES below. It has $ERRORS itself.
constexpr char kBytes[] = R"json(     {"$ref": "#/components/parameters/IfNoneMatch"},
     {"$ref": "#/components/parameters/IfRange"},
     {"$ref": "#/components/parameters/IfModifiedSince"},
     {"$ref": "#/components/parameters/IfUnmodifiedSince"}
    ],
    "responses": {
     "200": {"$ref": "#/components/responses/Bytes"},
     "206": {"$ref": "#/components/responses/Ranges"},
     "304": {"description": "Not modified"},
     $ERRORS,
     "410": {"$ref": "#/components/responses/E410"},
     "412": {"$ref": "#/components/responses/E412"},
     "416": {"$ref": "#/components/responses/E416"}
    })json";

constexpr char kTemplate[] = R"json({
 "openapi": "3.0.3",
 "info": {
  "title": "h5mirror",
  "version": "1",
  "description": "Files of an h5mirror server, and all their versions"
 },
 "security": [{"token": []}, {}],
 "paths": {
  "/f/{name}": {
   "get": {
    "operationId": "getFile",
    "summary": "The newest version, or cut of an open file",
    "parameters": [
     {"$ref": "#/components/parameters/name"}, {"$ref": "#/components/parameters/Range"},
     {"$ref": "#/components/parameters/IfMatch"},
$BYTES
   }
  },
  "/f/{name}@{version}": {
   "get": {
    "operationId": "getVersion",
    "summary": "A version",
    "parameters": [
     {"$ref": "#/components/parameters/name"}, {"$ref": "#/components/parameters/version"},
     {"$ref": "#/components/parameters/Range"}, {"$ref": "#/components/parameters/IfMatch"},
$BYTES
   }
  },
  "/v1/files": {
   "get": {
    "operationId": "listFiles",
    "summary": "Files by name",
    "parameters": [
     {"$ref": "#/components/parameters/directory"}, {"$ref": "#/components/parameters/match"},
     {"$ref": "#/components/parameters/state"}, {"$ref": "#/components/parameters/forks"},
     {"$ref": "#/components/parameters/details"},
     {"$ref": "#/components/parameters/page_size"}, {"$ref": "#/components/parameters/page_token"}
    ],
    "responses": {
     "200": {
      "description": "ListFilesResponse",
      "content": {
       "application/json": {"schema": {"$ref": "#/components/schemas/ListFilesResponse"}}
      }
     },
     $ERRORS
    }
   }
  },
  "/v1/files/{name}": {
   "get": {
    "operationId": "getStatus",
    "summary": "The state of a file",
    "parameters": [{"$ref": "#/components/parameters/name"}],
    "responses": {
     "200": {
      "description": "FileStatus",
      "content": {"application/json": {"schema": {"$ref": "#/components/schemas/FileStatus"}}}
     },
     $ERRORS
    }
   }
  },
  "/v1/files/{name}/versions": {
   "get": {
    "operationId": "listVersions",
    "summary": "Versions, the newest first",
    "parameters": [
     {"$ref": "#/components/parameters/name"}, {"$ref": "#/components/parameters/page_size"},
     {"$ref": "#/components/parameters/page_token"}
    ],
    "responses": {
     "200": {
      "description": "ListVersionsResponse",
      "content": {"application/json": {"schema": {"type": "object"}}}
     },
     $ERRORS
    }
   }
  },
  "/v1/files/{name}/events": {
   "get": {
    "operationId": "followEvents",
    "summary": "Events as they happen",
    "parameters": [
     {"$ref": "#/components/parameters/name"}, {"$ref": "#/components/parameters/LastEventID"}
    ],
    "responses": {
     "200": {
      "description": "Server-Sent Events",
      "content": {"text/event-stream": {"schema": {"type": "string"}}}
     },
     $ERRORS
    }
   }
  }
 },
 "components": {
  "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
  "schemas": {
   "Error": {
    "type": "object",
    "required": ["error"],
    "properties": {
     "error": {
      "type": "object",
      "required": ["code", "message"],
      "properties": {"code": {"type": "string"}, "message": {"type": "string"}}
     }
    }
   },
   "FileStatus": {
    "type": "object",
    "properties": {
     "name": {"type": "string"},
     "forked_from": {"$ref": "#/components/schemas/SourceVersion"}
    }
   },
   "ListFilesResponse": {
    "type": "object",
    "properties": {
     "files": {
      "type": "array",
      "items": {
       "type": "object",
       "properties": {
        "name": {"type": "string"},
        "size_bytes": {"type": "string"},
        "modify_time": {"type": "string", "format": "date-time"},
        "mirror": {"type": "object"},
        "forked_from": {"$ref": "#/components/schemas/SourceVersion"},
        "last_writer": {"$ref": "#/components/schemas/LastWriter"},
        "history_bytes": {"type": "string"},
        "recent_writes": {"$ref": "#/components/schemas/RecentWrites"}
       }
      }
     },
     "next_page_token": {"type": "string"}
    }
   },
   "LastWriter": {
    "type": "object",
    "description": "The writer that holds the lease, else the one that made the newest version",
    "properties": {
     "writer": {
      "type": "object",
      "properties": {
       "claimed_user": {"type": "string"},
       "host": {"type": "string"},
       "program": {"type": "string"},
       "pid": {"type": "integer"}
      }
     },
     "verified_user": {"type": "string"},
     "is_writing": {"type": "boolean"},
     "time": {"type": "string", "format": "date-time"}
    }
   },
   "RecentWrites": {
    "type": "object",
    "description": "Bytes that writers have sent in the last minutes",
    "properties": {
     "interval_seconds": {"type": "integer"},
     "end_time": {"type": "string", "format": "date-time"},
     "received_bytes": {"type": "array", "items": {"type": "string"}}
    }
   },
   "SourceVersion": {
    "type": "object",
    "description": "The version that a fork began with; name: that its file had then",
    "properties": {
     "kind": {"type": "string"},
     "file_id": {"type": "string", "format": "byte"},
     "name": {"type": "string"},
     "version": {"type": "string"},
     "cut": {"type": "string"},
     "server_time": {"type": "string", "format": "date-time"},
     "claimed_user": {"type": "string"},
     "verified_user": {"type": "string"}
    }
   }
  },
  "parameters": {
   "name": {
    "name": "name",
    "in": "path",
    "required": true,
    "description": "The file's name; @ is written %40, and / may be written %2F",
    "schema": {
     "type": "string",
     "pattern": "^[^/]{1,247}(/[^/]{1,247})*$",
     "maxLength": 4096
    }
   },
   "Range": {"name": "Range", "in": "header", "schema": {"type": "string"}},
   "IfMatch": {"name": "If-Match", "in": "header", "schema": {"type": "string"}},
   "IfNoneMatch": {"name": "If-None-Match", "in": "header", "schema": {"type": "string"}},
   "IfRange": {"name": "If-Range", "in": "header", "schema": {"type": "string"}},
   "IfModifiedSince": {
    "name": "If-Modified-Since",
    "in": "header",
    "schema": {"type": "string"}
   },
   "IfUnmodifiedSince": {
    "name": "If-Unmodified-Since",
    "in": "header",
    "schema": {"type": "string"}
   },
   "version": {
    "name": "version",
    "in": "path",
    "required": true,
    "description": "12, latest, latest-3, tag:NAME or a time",
    "schema": {"type": "string"}
   },
   "directory": {"name": "directory", "in": "query", "schema": {"type": "string"}},
   "match": {
    "name": "match",
    "in": "query",
    "description": "A glob of names",
    "schema": {"type": "string", "minLength": 1}
   },
   "state": {
    "name": "state",
    "in": "query",
    "explode": true,
    "schema": {
     "type": "array",
     "items": {
      "type": "string",
      "enum": ["CONNECTED", "DEGRADED", "RESYNCING", "IN_SYNC", "DIVERGED"]
     }
    }
   },
   "forks": {
    "name": "forks",
    "in": "query",
    "description": "Only forks, each with forked_from",
    "schema": {"type": "string", "enum": ["true", "false"]}
   },
   "details": {
    "name": "details",
    "in": "query",
    "description": "The details of a list by states or of forks, for all files",
    "schema": {"type": "string", "enum": ["true", "false"]}
   },
   "page_size": {
    "name": "page_size",
    "in": "query",
    "description": "1,000 at most",
    "schema": {"type": "integer", "format": "int32", "minimum": 1}
   },
   "page_token": {"name": "page_token", "in": "query", "schema": {"type": "string"}},
   "LastEventID": {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}}
  },
  "responses": {
   "E400": {
    "description": "A bad name, version or query",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "E401": {
    "description": "No known caller",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "E403": {
    "description": "The right to read is missing",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "Elsewhere": {
    "description": "Another server of the cluster has it: the same request there",
    "headers": {
     "Location": {"required": true, "schema": {"type": "string", "format": "uri"}}
    },
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "E404": {
    "description": "No such file, or none that the caller may know of",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "E409": {
    "description": "The state of the file does not allow it",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "E421": {
    "description": "Host names another host",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "E429": {
    "description": "Over a limit or a share",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "E500": {
    "description": "An error of the server",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "E503": {
    "description": "Try again",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "E504": {
    "description": "Try again",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "E410": {
    "description": "The version was pruned",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "E412": {
    "description": "The condition does not hold",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "E416": {
    "description": "No such range",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
   },
   "Bytes": {
    "description": "The bytes",
    "content": {"application/x-hdf5": {"schema": {"type": "string", "format": "binary"}}},
    "headers": {"ETag": {"schema": {"type": "string"}}}
   },
   "Ranges": {
    "description": "Ranges of them",
    "content": {
     "application/x-hdf5": {"schema": {"type": "string", "format": "binary"}},
     "multipart/byteranges": {"schema": {"type": "string", "format": "binary"}}
    }
   }
  }
 }
}
)json";

}  // namespace

std::string_view OpenApiDocument() {
  static const auto& document = *new std::string(absl::StrReplaceAll(
      absl::StrReplaceAll(kTemplate, {{"$BYTES", kBytes}}), {{"$ERRORS", kErrors}}));
  return document;
}

}  // namespace h5mirror::server
