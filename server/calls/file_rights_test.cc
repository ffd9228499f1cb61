// The rights of callers to files, over the wire: every call that names a file, found by reflection
// so that one which comes later counts too.
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/dynamic_message.h>
#include <gtest/gtest.h>

#include "grpcpp/generic/generic_stub.h"
#include "server/settings/token_file.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

AccessRule Rule(const std::string& files, std::vector<std::string> users, std::string_view allow) {
  AccessRule rule;
  rule.files = {files};
  rule.users = std::move(users);
  if (!allow.empty()) rule.allow = *Rights::Parse(allow);
  return rule;
}

class FileRightsTest : public MirrorServerTest {
 protected:
  void SetUp() override {
    MirrorServerTest::SetUp();
    config_.tokens_file = directory_.path() / "tokens";
    for (const char* name : {"anna", "bob", "guest"}) {
      tokens_[name] = *AddToken(config_.tokens_file, name, Rights::All());
    }
    config_.access = {Rule("home/anna/**", {"anna"}, "read,write,restore,delete"),
                      Rule("home/bob/**", {"bob"}, "read,write,restore,delete"),
                      Rule("pub/**", {}, "read")};
    Be("anna");
    Start();
    MirrorWhole("home/anna/a.h5", "hello");
  }
  void Be(const std::string& name) {
    options_.token = tokens_.at(name);
    if (server_ != nullptr) Connect();
  }
  std::vector<std::string> Listed(const std::string& directory = "") {
    v1::ListFilesRequest request;
    request.set_directory(directory);
    request.set_page_size(1);  // One a page: page tokens are seen too.
    std::vector<std::string> names;
    do {
      const auto page = client_->ListFiles(request);
      if (!page.ok()) return {std::string(page.status().message())};
      for (const auto& file : page->files()) names.push_back(file.name());
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    return names;
  }
  // One call with that message, as `token`. Unary or a stream of answers.
  grpc::Status Call(const MethodDescriptor& method, const Message& request,
                    const std::string& token) {
    const auto channel = grpc::CreateChannel(options_.server, grpc::InsecureChannelCredentials());
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    context.AddMetadata("authorization", "Bearer " + token);
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(
        &context, "/" + method.service()->full_name() + "/" + method.name(), &queue);
    const auto next = [&queue] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    call->StartCall(nullptr);
    next();
    const grpc::Slice slice(request.SerializeAsString());
    call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    next();
    grpc::ByteBuffer answer;
    do {
      call->Read(&answer, nullptr);
    } while (next());
    grpc::Status status;
    call->Finish(&status, nullptr);
    next();
    return status;
  }

  std::map<std::string, std::string> tokens_;
};

// All calls of the wire whose request has a `name`, but for those of the whole server.
std::vector<const MethodDescriptor*> CallsThatNameAFile() {
  std::vector<const MethodDescriptor*> calls;
  for (const char* name : {"Files", "Versions", "Snapshots", "Agents", "Archive"}) {
    const auto* service =
        DescriptorPool::generated_pool()->FindServiceByName(StrCat("h5mirror.v1.", name));
    for (int i = 0; i < service->method_count(); ++i) {
      const MethodDescriptor* const method = service->method(i);
      if (method->input_type()->FindFieldByName("name") != nullptr) calls.push_back(method);
    }
  }
  return calls;
}

TEST_F(FileRightsTest, EachCallHidesFilesOfOthers) {
  google::protobuf::DynamicMessageFactory factory;
  const auto calls = CallsThatNameAFile();
  EXPECT_GE(calls.size(), 20);
  for (const MethodDescriptor* method : calls) {
    const auto ask = [&](const std::string& name) {
      const std::unique_ptr<Message> request(factory.GetPrototype(method->input_type())->New());
      const FieldDescriptor* const field = method->input_type()->FindFieldByName("name");
      request->GetReflection()->SetString(request.get(), field, name);
      return Call(*method, *request, tokens_.at("bob"));
    };
    const grpc::Status there = ask("home/anna/a.h5");
    const grpc::Status missing = ask("home/anna/b.h5");
    if (method->name() == "ListRemovedFiles") {
      EXPECT_TRUE(there.ok() && missing.ok());  // An empty list: the name is a filter.
      continue;
    }
    EXPECT_EQ(there.error_code(), grpc::StatusCode::NOT_FOUND)
        << method->full_name() << ": " << there.error_message();
    EXPECT_EQ(missing.error_code(), there.error_code()) << method->full_name();
    // Word for word the same, but for the name.
    std::string expected = there.error_message();
    for (size_t at = 0; (at = expected.find("a.h5", at)) != std::string::npos; ++at) {
      expected[at] = 'b';
    }
    EXPECT_EQ(missing.error_message(), expected) << method->full_name();
  }
}

TEST_F(FileRightsTest, ARightThatIsMissingIsNamedWhereOthersAreThere) {
  config_.access = {Rule("home/anna/**", {"bob"}, "read")};
  ASSERT_TRUE(server_->ReloadRules(config_.access).ok());
  Be("bob");
  EXPECT_TRUE(Settled("home/anna/a.h5").ok());
  v1::RemoveFileRequest request;
  request.set_name("home/anna/a.h5");
  const absl::Status refused = client_->RemoveFile(request).status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("token \"bob\" has the rights \"read\" to home/anna/a.h5 and this call "
                        "needs \"delete\""));
}

TEST_F(FileRightsTest, ListsHaveWhatTheCallerMayRead) {
  Be("bob");
  MirrorWhole("home/bob/1.h5", "1");
  MirrorWhole("home/bob/z/2.h5", "2");
  Be("anna");
  MirrorWhole("home/anna/z.h5", "3");
  EXPECT_THAT(Listed(), ElementsAre("home/anna/a.h5", "home/anna/z.h5"));
  Be("bob");
  EXPECT_THAT(Listed(), ElementsAre("home/bob/1.h5", "home/bob/z/2.h5"));
  EXPECT_THAT(Listed("home/bob/z"), ElementsAre("home/bob/z/2.h5"));
  // A directory of others is none.
  const auto hidden = Listed("home/anna");
  const auto missing = Listed("home/carol");
  ASSERT_EQ(hidden.size(), 1);
  EXPECT_THAT(hidden[0], HasSubstr("no directory home/anna"));
  EXPECT_THAT(missing[0], HasSubstr("no directory home/carol"));
  Be("guest");
  EXPECT_THAT(Listed(), ElementsAre());
}

// Each kind of list, each page.
TEST_F(FileRightsTest, AHiddenDirectoryLooksAsOneThatIsNotThere) {
  Be("bob");
  MirrorWhole("home/bob/1.h5", "1");
  const auto list = [&](const std::string& directory, const std::string& token,
                        const std::function<void(v1::ListFilesRequest&)>& set) {
    v1::ListFilesRequest request;
    request.set_directory(directory);
    request.set_page_token(token);
    set(request);
    return client_->ListFiles(request).status();
  };
  const std::vector<std::function<void(v1::ListFilesRequest&)>> kinds = {
      [](v1::ListFilesRequest&) {},
      [](v1::ListFilesRequest& request) { request.set_details(true); },
      [](v1::ListFilesRequest& request) { request.set_forks_only(true); },
      [](v1::ListFilesRequest& request) { request.add_states(v1::MIRROR_STATE_DIVERGED); }};
  for (const auto& set : kinds) {
    for (const char* token : {"", "home/a.h5", "home/z.h5"}) {
      for (const char* hidden : {"home/anna", "home/carol"}) {
        const absl::Status listed = list(hidden, token, set);
        EXPECT_TRUE(absl::IsNotFound(listed)) << listed;
        EXPECT_THAT(std::string(listed.message()), HasSubstr(StrCat("no directory ", hidden)));
      }
      // One's own is there, though no file of it is chosen, or none comes any more.
      EXPECT_TRUE(list("home/bob", token, set).ok());
    }
  }
}

// The same for a token that is limited to files, without a table.
TEST_F(FileRightsTest, ATokenForSomeFilesSeesNoOtherDirectory) {
  server_.reset();
  TokenLimits limits;
  ASSERT_TRUE(limits.Set("files", "home/bob/**").ok());
  tokens_["bobs"] = *AddToken(config_.tokens_file, "bobs", Rights::All(), limits);
  config_.access.clear();
  Be("bobs");
  Start();
  EXPECT_THAT(Listed(), ElementsAre());
  const auto hidden = Listed("home/anna");
  ASSERT_EQ(hidden.size(), 1);
  EXPECT_THAT(hidden[0], HasSubstr("no directory home/anna"));
}

TEST_F(FileRightsTest, BothNamesOfAMoveCount) {
  Be("bob");
  MirrorWhole("home/bob/1.h5", "1");
  const auto move = [&](const std::string& from, const std::string& to) {
    v1::MoveFileRequest request;
    request.set_name(from);
    request.set_new_name(to);
    return client_->MoveFile(request).status();
  };
  EXPECT_TRUE(absl::IsNotFound(move("home/anna/a.h5", "home/bob/2.h5")));
  EXPECT_TRUE(absl::IsNotFound(move("home/bob/1.h5", "home/anna/2.h5")));
  EXPECT_TRUE(absl::IsPermissionDenied(move("home/bob/1.h5", "pub/2.h5")));
  EXPECT_TRUE(move("home/bob/1.h5", "home/bob/2.h5").ok());
}

TEST_F(FileRightsTest, RemovedFilesOfOthersStayHidden) {
  v1::RemoveFileRequest remove;
  remove.set_name("home/anna/a.h5");
  const auto removed = client_->RemoveFile(remove);
  ASSERT_TRUE(removed.ok()) << removed.status();
  Be("bob");
  const auto listed = client_->ListRemovedFiles({});
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(listed->files_size(), 0);
  v1::UndeleteFileRequest undelete;
  undelete.set_removal_id(removed->removal_id());
  undelete.set_new_name("home/bob/mine.h5");
  EXPECT_TRUE(absl::IsNotFound(client_->UndeleteFile(undelete).status()));
  Be("anna");
  EXPECT_EQ(client_->ListRemovedFiles({})->files_size(), 1);
  EXPECT_TRUE(absl::IsNotFound(client_->UndeleteFile(undelete).status()));
  undelete.set_new_name("home/anna/back.h5");
  EXPECT_TRUE(client_->UndeleteFile(undelete).ok());
}

TEST_F(FileRightsTest, SessionsNeedTheRightToTheirFile) {
  const auto refusal = [&](const v1::MirrorFileRequest& request) {
    auto stream = client_->OpenMirrorStream();
    EXPECT_TRUE(stream.ok()) << stream.status();
    EXPECT_TRUE((*stream)->Send(request).ok());
    return (*stream)->Receive().status();
  };
  Be("bob");
  for (const v1::Intent intent : {v1::INTENT_CREATE, v1::INTENT_CONTINUE, v1::INTENT_REPLACE}) {
    EXPECT_TRUE(absl::IsNotFound(refusal(OpenRequest("home/anna/a.h5", intent))));
  }
  EXPECT_TRUE(absl::IsPermissionDenied(refusal(OpenRequest("pub/a.h5", v1::INTENT_CREATE))));
  // Nor is another's file moved, or told of, by an open that calls it the former name.
  Be("anna");
  auto writer = Open("home/anna/a.h5", v1::INTENT_REPLACE);
  Be("bob");
  v1::MirrorFileRequest renamed = OpenRequest("home/bob/new.h5", v1::INTENT_CONTINUE);
  renamed.mutable_open()->set_renamed_from("home/anna/a.h5");
  auto stream = client_->OpenMirrorStream();
  ASSERT_TRUE((*stream)->Send(renamed).ok());
  const auto answer = (*stream)->Receive();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->opened().relation(), v1::RELATION_DIVERGED);
  EXPECT_THAT(answer->opened().state(), Not(HasSubstr("alice")));
  EXPECT_TRUE(writer->Finish().ok());
}

// The id of a session is known to each reader of its file.
TEST_F(FileRightsTest, AStreamOfAnotherFileDoesNotCountForASession) {
  v1::MirrorFileRequest mine = OpenRequest("home/anna/new.h5", v1::INTENT_CREATE);
  mine.mutable_open()->set_stream(1);
  Be("bob");
  v1::MirrorFileRequest theirs = OpenRequest("home/bob/new.h5", v1::INTENT_CREATE);
  theirs.mutable_open()->set_session_id(mine.open().session_id());
  theirs.mutable_open()->set_stream(99);
  auto stream = client_->OpenMirrorStream();
  ASSERT_TRUE((*stream)->Send(theirs).ok());
  ASSERT_TRUE((*stream)->Receive().ok());
  Be("anna");
  auto own = client_->OpenMirrorStream();
  ASSERT_TRUE((*own)->Send(mine).ok());
  const auto answer = (*own)->Receive();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->opened().relation(), v1::RELATION_NEW);
}

TEST_F(FileRightsTest, ReloadedTablesEndSessionsAndFollowers) {
  auto writer = Open("home/anna/a.h5", v1::INTENT_REPLACE);
  EXPECT_THAT(std::string(server_->ReloadRules({}).message()), HasSubstr("no [[access]] table"));
  ASSERT_TRUE(server_->ReloadRules({Rule("home/anna/**", {"anna"}, "read")}).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(writer->Receive().status()));
  EXPECT_TRUE(Settled("home/anna/a.h5").ok());
  ASSERT_TRUE(server_->ReloadRules({Rule("home/bob/**", {"bob"}, "read")}).ok());
  EXPECT_TRUE(absl::IsNotFound(Settled("home/anna/a.h5").status()));
}

// All users share a directory, and may change and remove what they made, as in /tmp.
class FileOwnersTest : public FileRightsTest {
 protected:
  void SetUp() override {
    config_.tick_len =
        absl::Hours(1);  // Until then a follower does not hear that its file has gone.
    FileRightsTest::SetUp();
    AccessRule own = Rule("shared/**", {}, "read,write,restore,delete");
    own.owners = {"${user}"};
    rules_ = {Rule("shared/**", {"guest"}, "read,delete,operate"), own,
              Rule("shared/open/**", {}, "read")};
    ASSERT_TRUE(server_->ReloadRules(rules_).ok());
    MirrorWhole("shared/a.h5", "hello");
    MirrorWhole("shared/open/a.h5", "hello");
  }
  absl::Status Remove(const std::string& name) {
    v1::RemoveFileRequest request;
    request.set_name(name);
    return client_->RemoveFile(request).status();
  }
  absl::Status Move(const std::string& from, const std::string& to) {
    v1::MoveFileRequest request;
    request.set_name(from);
    request.set_new_name(to);
    return client_->MoveFile(request).status();
  }
  absl::Status OpenStatus(const std::string& name, v1::Intent intent) {
    auto stream = client_->OpenMirrorStream();
    EXPECT_TRUE(stream.ok()) << stream.status();
    EXPECT_TRUE((*stream)->Send(OpenRequest(name, intent)).ok());
    return (*stream)->Receive().status();
  }
  std::string OwnerOf(const std::string& name) {
    const auto status = Settled(name);
    EXPECT_TRUE(status.ok()) << status.status();
    return status.ok() ? status->owner() : "";
  }

  std::vector<AccessRule> rules_;
};

TEST_F(FileOwnersTest, EachCallHidesFilesOfOthers) {
  google::protobuf::DynamicMessageFactory factory;
  for (const MethodDescriptor* method : CallsThatNameAFile()) {
    const std::unique_ptr<Message> request(factory.GetPrototype(method->input_type())->New());
    const FieldDescriptor* const field = method->input_type()->FindFieldByName("name");
    request->GetReflection()->SetString(request.get(), field, "shared/a.h5");
    const grpc::Status status = Call(*method, *request, tokens_.at("bob"));
    if (method->name() == "ListRemovedFiles") continue;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND)
        << method->full_name() << ": " << status.error_message();
  }
  Be("bob");
  for (const v1::Intent intent : {v1::INTENT_CREATE, v1::INTENT_CONTINUE, v1::INTENT_REPLACE}) {
    EXPECT_TRUE(absl::IsNotFound(OpenStatus("shared/a.h5", intent)));
    EXPECT_TRUE(absl::IsPermissionDenied(OpenStatus("shared/open/a.h5", intent)));
  }
  EXPECT_THAT(Listed(), ElementsAre("shared/open/a.h5"));
  EXPECT_EQ(OwnerOf("shared/open/a.h5"), "token:anna");
}

TEST_F(FileOwnersTest, OnlyTheOwnerMovesRemovesAndBringsBack) {
  Be("bob");
  MirrorWhole("shared/b.h5", "mine");
  EXPECT_TRUE(absl::IsNotFound(Move("shared/a.h5", "shared/c.h5")));
  EXPECT_TRUE(absl::IsPermissionDenied(Move("shared/open/a.h5", "shared/c.h5")));
  EXPECT_FALSE(Move("shared/b.h5", "shared/a.h5").ok()) << "onto another's";
  EXPECT_TRUE(absl::IsPermissionDenied(Remove("shared/open/a.h5")));
  ASSERT_TRUE(Move("shared/b.h5", "shared/open/b.h5").ok());
  EXPECT_EQ(OwnerOf("shared/open/b.h5"), "token:bob");
  Be("anna");
  EXPECT_TRUE(absl::IsPermissionDenied(Remove("shared/open/b.h5")));
  ASSERT_TRUE(Move("shared/a.h5", "shared/open/c.h5").ok());
  ASSERT_TRUE(Remove("shared/open/c.h5").ok());
  Be("bob");
  // The name is free, and what had it before stays its owner's.
  MirrorWhole("shared/open/c.h5", "bob's");
  v1::UndeleteFileRequest undelete;
  undelete.set_name("shared/open/c.h5");
  undelete.set_new_name("shared/d.h5");
  EXPECT_FALSE(client_->UndeleteFile(undelete).ok());
  Be("anna");
  ASSERT_TRUE(client_->UndeleteFile(undelete).ok());
  EXPECT_EQ(OwnerOf("shared/d.h5"), "token:anna");
  EXPECT_TRUE(OpenStatus("shared/d.h5", v1::INTENT_REPLACE).ok());
}

// Else the next file of that name, or what is left of the former one, could be another's.
TEST_F(FileOwnersTest, AFileThatIsNotThereCanBeMadeAndNoMore) {
  Be("bob");
  const auto server = client_->GetServer("shared/none.h5");
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(std::vector<std::string>(server->rights().begin(), server->rights().end()),
              ElementsAre("write", "delete"));
  EXPECT_TRUE(absl::IsNotFound(Settled("shared/none.h5").status()));
}

// Else it would be where neither of the two gets at it.
TEST_F(FileOwnersTest, NoFileIsPutWhereItsOwnerAndTheMoverHaveNoRight) {
  AccessRule home = Rule("home/**", {"guest"}, "read,write,delete");
  home.owners = {"${user}"};
  rules_.insert(rules_.begin(), home);
  ASSERT_TRUE(server_->ReloadRules(rules_).ok());
  Be("guest");
  EXPECT_FALSE(Move("shared/a.h5", "home/a.h5").ok());
  ASSERT_TRUE(Remove("shared/a.h5").ok());
  v1::UndeleteFileRequest undelete;
  undelete.set_name("shared/a.h5");
  undelete.set_new_name("home/a.h5");
  EXPECT_FALSE(client_->UndeleteFile(undelete).ok());
  MirrorWhole("home/mine.h5", "guest's");
  EXPECT_TRUE(Move("home/mine.h5", "home/still.h5").ok());
  undelete.clear_new_name();
  EXPECT_TRUE(client_->UndeleteFile(undelete).ok());
  EXPECT_EQ(OwnerOf("shared/a.h5"), "token:anna");
}

TEST_F(FileOwnersTest, AFollowerEndsWhereItsNameGetsAnotherFile) {
  v1::FollowFileRequest request;
  request.set_name("shared/a.h5");
  const auto follower = client_->FollowFile(request);
  v1::FollowFileResponse message;
  ASSERT_TRUE(follower->Read(message));
  // By a client of its own: the follower goes on with the other one.
  rpc::ClientOptions mine = options_;
  const auto other = [&](const std::string& name) {
    mine.token = tokens_.at(name);
    auto client = rpc::Client::Connect(mine, absl::Seconds(20));
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  };
  v1::RemoveFileRequest remove;
  remove.set_name("shared/a.h5");
  ASSERT_TRUE(other("anna")->RemoveFile(remove).ok());
  auto bob = other("bob");
  auto stream = bob->OpenMirrorStream();
  ASSERT_TRUE((*stream)->Send(OpenRequest("shared/a.h5", v1::INTENT_CREATE)).ok());
  ASSERT_TRUE((*stream)->Receive().ok());
  while (follower->Read(message)) continue;
  const absl::Status ended = follower->Finish();
  EXPECT_TRUE(absl::IsNotFound(ended)) << ended;
}

TEST_F(FileOwnersTest, AnotherOwnerIsGivenByWhoMayOperate) {
  v1::SetFileOwnerRequest request;
  request.set_name("shared/open/a.h5");
  request.set_owner("token:bob");
  EXPECT_TRUE(absl::IsPermissionDenied(client_->SetFileOwner(request).status()));
  auto writer = Open("shared/open/a.h5", v1::INTENT_REPLACE);
  Be("guest");
  const auto given = client_->SetFileOwner(request);
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->owner(), "token:bob");
  EXPECT_TRUE(absl::IsPermissionDenied(writer->Receive().status())) << "the session has ended";
  Be("bob");
  EXPECT_TRUE(Remove("shared/open/a.h5").ok());
  Be("guest");
  request.set_owner("bob");
  EXPECT_TRUE(absl::IsInvalidArgument(client_->SetFileOwner(request).status()));
}

TEST_F(FileRightsTest, RightsToANamedFileAreTold) {
  const auto rights = [&](const std::string& name) {
    const auto server = client_->GetServer(name);
    EXPECT_TRUE(server.ok()) << server.status();
    return std::vector<std::string>(server->rights().begin(), server->rights().end());
  };
  EXPECT_THAT(rights("home/anna/a.h5"), ElementsAre("read", "write", "restore", "delete"));
  EXPECT_THAT(rights("pub/a.h5"), ElementsAre("read"));
  EXPECT_THAT(rights("home/bob/a.h5"), ElementsAre());
  EXPECT_EQ(rights("").size(), 5);
}

TEST_F(FileRightsTest, ACallerThatNoTableTakesSeesNothingOfTheMachine) {
  EXPECT_EQ(client_->GetServer()->root(), config_.root.string());
  EXPECT_GT(client_->GetServer()->memory_max_bytes(), 0);
  config_.access = {Rule("home/anna/**", {"anna"}, "read"), Rule("home/bob/**", {"bob"}, "")};
  ASSERT_TRUE(server_->ReloadRules(config_.access).ok());
  for (const char* name : {"guest", "bob"}) {
    Be(name);
    const auto server = client_->GetServer();
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_EQ(server->verified_user(), name);
    EXPECT_NE(server->server_version(), "");
    EXPECT_THAT(server->rights(), ElementsAre());
    EXPECT_EQ(server->root(), "");
    EXPECT_FALSE(server->has_start_time());
    EXPECT_EQ(server->memory_max_bytes() + server->memory_used_bytes() + server->open_files() +
                  server->open_sessions() + server->free_bytes(),
              0);
  }
}

}  // namespace
}  // namespace h5mirror::server
