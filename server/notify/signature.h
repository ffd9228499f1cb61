// The signature of a web hook's body. It proves to the receiver that this server has sent it.
#ifndef H5MIRROR_SERVER_NOTIFY_SIGNATURE_H_
#define H5MIRROR_SERVER_NOTIFY_SIGNATURE_H_

#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace h5mirror::server {

// HMAC-SHA256 (RFC 2104), 64 hex digits.
std::string HmacSha256Hex(std::string_view key, std::string_view text);

// The value of the header H5mirror-Signature: "t=UNIXTIME,v1=HEX". HEX is the HMAC-SHA256 of
// "UNIXTIME.BODY". The time is in it so that a receiver can refuse an old body that is sent again.
std::string SignatureOf(std::string_view key, std::string_view body, absl::Time time);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_NOTIFY_SIGNATURE_H_
