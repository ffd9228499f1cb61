#include "rpc/status.h"

#include "gtest/gtest.h"

namespace h5mirror::rpc {
namespace {

TEST(RpcStatusTest, EveryCodeRoundTrips) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), code == 0 ? "" : "why");
    EXPECT_EQ(static_cast<int>(ToGrpc(status).error_code()), code);
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
}

TEST(RpcStatusTest, LongMessagesAreCutBetweenCharacters) {
  std::string message(4092, 'x');
  message += "\xc3\xbc\xc3\xbc\xc3\xbc";  // The cut would fall into the first of them.
  const std::string cut = ToGrpc(absl::InternalError(message)).error_message();
  std::string expected(4092, 'x');
  expected.append("...");
  EXPECT_EQ(cut, expected);
}

TEST(RpcStatusTest, MessagesAreFitForATerminal) {
  EXPECT_EQ(ToGrpc(absl::NotFoundError("no file \"a\n\033[2J\u202eb\"")).error_message(),
            "no file \"a\\x0a\\x1b[2J\\xe2\\x80\\xaeb\"");
  EXPECT_EQ(FromGrpc(grpc::Status(grpc::StatusCode::INTERNAL, "\033]0;title\a")).message(),
            "\\x1b]0;title\\x07");
}

TEST(RpcStatusTest, ACallThatTheServerCancelsSaysThatItIsStopping) {
  const absl::Status ended = FromServer(grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED"));
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
  EXPECT_EQ(ended.message(),
            "the server, or something between, has ended this call, which may have been done; the "
            "server may be stopping: ask again once it runs");
  EXPECT_TRUE(FromServer(grpc::Status::OK).ok());
  EXPECT_EQ(FromServer(grpc::Status(grpc::StatusCode::NOT_FOUND, "none")),
            absl::NotFoundError("none"));
}

TEST(RpcStatusTest, CodeThatIsNoneIsUnknown) {
  EXPECT_TRUE(absl::IsUnknown(FromGrpc(grpc::Status(grpc::StatusCode::DO_NOT_USE, "odd"))));
}

}  // namespace
}  // namespace h5mirror::rpc
