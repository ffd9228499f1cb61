#include "server/door/connection_table.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"

namespace h5mirror::server {
namespace {

using ::testing::Eq;
using ::testing::Optional;

TEST(PeerTest, GrpcsTextsAreUnderstood) {
  const auto v4 = ParseGrpcPeer("ipv4:192.0.2.7:4711");
  ASSERT_TRUE(v4.has_value());
  EXPECT_EQ(v4->Name(), "192.0.2.7");
  EXPECT_EQ(v4->port, 4711);
  EXPECT_EQ(v4->kind, Peer::Kind::kNetwork);
  const auto v6 = ParseGrpcPeer("ipv6:%5B2001:db8::1%5D:65535");
  ASSERT_TRUE(v6.has_value());
  EXPECT_EQ(v6->Name(), "2001:db8::1");
  EXPECT_EQ(v6->port, 65535);
  EXPECT_EQ(ParseGrpcPeer("ipv6:%5Bfe80::1%25eth0%5D:1")->Name(), "fe80::1");
  EXPECT_EQ(ParseGrpcPeer("ipv6:%5B::ffff:127.0.0.1%5D:1")->Name(), "127.0.0.1");
}

TEST(PeerTest, LoopbackIsToldFromTheNetwork) {
  for (const char* text : {"ipv4:127.0.0.1:1", "ipv4:127.3.2.1:1", "ipv6:%5B::1%5D:1"}) {
    EXPECT_EQ(ParseGrpcPeer(text)->kind, Peer::Kind::kLoopback) << text;
  }
}

TEST(PeerTest, OtherTextsAreNone) {
  for (const char* text : {"", "unix:", "unix:/run/x", "ipv4:", "ipv4:1.2.3.4",
                           "ipv4:1.2.3.4:99999", "ipv4:localhost:1", "ipv6:%5Bx%5D:1", "ipv6:1"}) {
    EXPECT_FALSE(ParseGrpcPeer(text).has_value()) << text;
  }
}

// Real connections on loopback, which the table is told to come from elsewhere.
class ConnectionTableTest : public ::testing::Test {
 protected:
  ConnectionTableTest() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    name_.sin_family = AF_INET;
    name_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(name_);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&name_), length), 0);
    EXPECT_EQ(listen(listener_.get(), 100), 0);
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name_), &length);
    limits_.connections = 6;
    limits_.peer_connections = 4;
    limits_.newcomers = 4;
    limits_.token_timeout = absl::Seconds(20);
    limits_.newcomer_bytes = 1000;
    limits_.newcomer_bytes_per_second = 100;
  }

  struct Client {
    OwnedFd fd;
    Peer peer;
    uint64_t number = 0;
    std::optional<Peer> cut;
    bool IsCut() const {
      pollfd ended{fd.get(), POLLRDHUP, 0};
      return poll(&ended, 1, 0) == 1;
    }
  };
  Client Add(const std::string& from, absl::Duration now = absl::ZeroDuration()) {
    Client client;
    client.fd = OwnedFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(client.fd.get(), reinterpret_cast<sockaddr*>(&name_), sizeof(name_)), 0);
    OwnedFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    client.peer = *ParseGrpcPeer(StrCat("ipv4:", from, ":", ++port_));
    client.number = table().Add(client.peer, std::move(fd), slot_, now, client.cut);
    return client;
  }
  ConnectionTable& table() {
    if (table_ == nullptr) table_ = std::make_unique<ConnectionTable>(limits_);
    return *table_;
  }
  std::optional<Turned> Refuses(const std::string& from) {
    return table().Refuses(*ParseGrpcPeer(StrCat("ipv4:", from, ":1")));
  }

  ConnectionLimits limits_;
  OwnedFd listener_;
  sockaddr_in name_{};
  int port_ = 1000;
  int slot_ = 0;
  std::unique_ptr<ConnectionTable> table_;
};

TEST_F(ConnectionTableTest, OneMoreThanAllIsRefusedWhereAllAreAdmitted) {
  std::vector<Client> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(Add(StrCat("192.0.2.", i)));
    table().Admit(clients.back().peer);
  }
  EXPECT_THAT(Refuses("198.51.100.1"), Optional(Turned::kConnections));
  table().Remove(clients[0].number, absl::ZeroDuration());
  EXPECT_THAT(Refuses("198.51.100.1"), Eq(std::nullopt));
}

TEST_F(ConnectionTableTest, NewcomerGivesWayWhereAllAreTaken) {
  const Client newcomer = Add("192.0.2.99");
  std::vector<Client> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(Add(StrCat("192.0.2.", i)));
    table().Admit(clients.back().peer);
  }
  EXPECT_THAT(Refuses("198.51.100.1"), Eq(std::nullopt));
  const Client next = Add("198.51.100.1");
  ASSERT_TRUE(next.cut.has_value());
  EXPECT_EQ(next.cut->Name(), "192.0.2.99");
  EXPECT_TRUE(newcomer.IsCut());
}

TEST_F(ConnectionTableTest, OnePeerHasALimitAndLoopbackHasNone) {
  std::vector<Client> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(Add("192.0.2.7"));
    table().Admit(clients.back().peer);
  }
  EXPECT_THAT(Refuses("192.0.2.7"), Optional(Turned::kPeer));
  EXPECT_THAT(Refuses("192.0.2.8"), Eq(std::nullopt));
  limits_.connections = 100;
  table_ = nullptr;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(Add("127.0.0.1"));
    table().Admit(clients.back().peer);
  }
  EXPECT_THAT(Refuses("127.0.0.1"), Eq(std::nullopt));
}

TEST_F(ConnectionTableTest, OldestNewcomerGoesForANewerOne) {
  std::vector<Client> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(Add(StrCat("192.0.2.", i)));
  const Client fifth = Add("192.0.2.50");
  ASSERT_TRUE(fifth.cut.has_value());
  EXPECT_EQ(fifth.cut->Name(), "192.0.2.0");
  EXPECT_TRUE(clients[0].IsCut());
  EXPECT_FALSE(clients[1].IsCut());
  EXPECT_EQ(table().Counts().newcomers, 4u);
}

TEST_F(ConnectionTableTest, OnePeersNewcomersGoForItsOwn) {
  const Client other = Add("192.0.2.1");
  const Client first = Add("192.0.2.2");
  const Client second = Add("192.0.2.2");
  EXPECT_TRUE(first.IsCut());
  EXPECT_FALSE(other.IsCut());
  EXPECT_FALSE(second.IsCut());
}

TEST_F(ConnectionTableTest, NewcomersTimeIsLimitedAndAProbesIsNot) {
  limits_.newcomers = 100;
  const Client silent = Add("127.0.0.1");
  const Client admitted = Add("127.0.0.1");
  const Client probe = Add("127.0.0.1");
  table().Admit(admitted.peer);
  table().SpareProbe(probe.peer);
  EXPECT_TRUE(table().CutOverdue(absl::Seconds(20)).empty());
  const auto cut = table().CutOverdue(absl::Seconds(21));
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].turned, Turned::kTokenTimeout);
  EXPECT_TRUE(silent.IsCut());
  EXPECT_FALSE(admitted.IsCut());
  EXPECT_FALSE(probe.IsCut());
}

TEST_F(ConnectionTableTest, NewcomersBytesAreLimited) {
  const Client client = Add("127.0.0.1");
  const std::string bytes(1500, 'x');
  ASSERT_EQ(send(client.fd.get(), bytes.data(), bytes.size(), 0), 1500);
  EXPECT_TRUE(table().CutOverdue(absl::Seconds(6)).empty());
  for (int i = 1; i < ConnectionTable::kOverTimes; ++i) {
    EXPECT_TRUE(table().CutOverdue(absl::Seconds(4)).empty());
  }
  const auto cut = table().CutOverdue(absl::Seconds(4));
  ASSERT_EQ(cut.size(), 1u);
  EXPECT_EQ(cut[0].turned, Turned::kBytes);
  EXPECT_TRUE(client.IsCut());
}

TEST_F(ConnectionTableTest, CutEndsWhatComesFromThatPort) {
  const Client one = Add("127.0.0.1");
  const Client two = Add("127.0.0.1");
  table().Cut(two.peer);
  EXPECT_FALSE(one.IsCut());
  EXPECT_TRUE(two.IsCut());
}

TEST_F(ConnectionTableTest, FirstCallOfASlotNamesItsOnlyConnection) {
  const Client one = Add("127.0.0.1");
  slot_ = table().ChooseSlot(0, 2, absl::ZeroDuration());
  EXPECT_EQ(slot_, 1);
  const Client two = Add("127.0.0.1");
  EXPECT_EQ(table().Claim(1, absl::Seconds(1)), two.number);
  EXPECT_EQ(table().Claim(1, absl::Seconds(1)), 0u);
  EXPECT_EQ(table().ChooseSlot(0, 2, absl::Seconds(1)), 1);
  EXPECT_TRUE(table().CutNumber(two.number).has_value());
  EXPECT_TRUE(two.IsCut());
  EXPECT_FALSE(one.IsCut());
}

TEST_F(ConnectionTableTest, CallOfASlotWithTwoNamesNoneAndBothAreCut) {
  const Client one = Add("127.0.0.1");
  const Client two = Add("127.0.0.1");
  const Client admitted = Add("127.0.0.1");
  table().Admit(admitted.peer);
  EXPECT_EQ(table().Claim(0, absl::Seconds(1)), 0u);
  EXPECT_EQ(table().CutUnclaimed(0).size(), 2u);
  EXPECT_TRUE(one.IsCut() && two.IsCut());
  EXPECT_FALSE(admitted.IsCut());
}

TEST_F(ConnectionTableTest, SlotOfAConnectionThatEndedIsInDoubtForAWhile) {
  const Client gone = Add("127.0.0.1");
  table().Remove(gone.number, absl::Seconds(1));
  const Client next = Add("127.0.0.1", absl::Seconds(1));
  EXPECT_EQ(table().Claim(0, absl::Seconds(2)), 0u);
  EXPECT_EQ(table().Claim(0, absl::Seconds(10)), next.number);
}

TEST_F(ConnectionTableTest, LastEndIsThatOfTheLastOneThatWasThere) {
  EXPECT_EQ(table().LastEnd(), -absl::InfiniteDuration());
  const Client client = Add("127.0.0.1");
  EXPECT_EQ(table().LastEnd(), -absl::InfiniteDuration());
  table().Remove(client.number, absl::Seconds(3));
  table().Remove(client.number, absl::Seconds(4));
  EXPECT_EQ(table().LastEnd(), absl::Seconds(3));
}

// Slots of a Unix socket: a slot tells the user of its calls.
class UserSlotsTest : public ConnectionTableTest {
 protected:
  UserSlotsTest() { limits_.connections = 1000; }

  static constexpr int kCount = 40;
  static constexpr absl::Duration kNow = absl::Hours(1);

  std::optional<int> Choose(uid_t user, absl::Duration now = kNow) {
    return table().ChooseUserSlot(user, 0, kCount, now);
  }
  // Takes in a connection; returns its number.
  uint64_t Enter(uid_t user, absl::Duration now = kNow) {
    const std::optional<int> slot = Choose(user, now);
    EXPECT_TRUE(slot.has_value());
    Peer peer;
    peer.kind = Peer::Kind::kUnixSocket;
    peer.uid = user;
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ends_.emplace_back(ends[1]);
    std::optional<Peer> cut;
    const uint64_t number = table().Add(peer, OwnedFd(ends[0]), *slot, now, cut);
    slots_[number] = *slot;
    return number;
  }

  std::vector<OwnedFd> ends_;
  std::map<uint64_t, int> slots_;
};

TEST_F(UserSlotsTest, NoSlotHasTwoUsers) {
  std::map<int, uid_t> users;
  for (int i = 0; i < 200; ++i) {
    const uid_t user = static_cast<uid_t>(i % 7);
    const int slot = slots_.at(Enter(user));
    EXPECT_EQ(users.try_emplace(slot, user).first->second, user);
    EXPECT_THAT(table().UserOf(slot), Optional(user));
  }
}

TEST_F(UserSlotsTest, OneUserTakesSixteenAndLeavesTheOthersRoom) {
  std::set<int> taken;
  for (int i = 0; i < 100; ++i) taken.insert(slots_.at(Enter(1)));
  EXPECT_EQ(taken.size(), ConnectionTable::kUserSlotsMax);
  // The second half of the slots has a user each.
  int users = 1;
  while (Choose(static_cast<uid_t>(users + 1)).has_value()) {
    Enter(static_cast<uid_t>(++users));
    Enter(static_cast<uid_t>(users));
  }
  EXPECT_GE(users, kCount / 2);
  EXPECT_TRUE(Choose(1).has_value());
}

TEST_F(UserSlotsTest, ASlotRestsBeforeAnotherUserHasIt) {
  for (int i = 0; i < kCount; ++i) Enter(static_cast<uid_t>(i));
  EXPECT_EQ(Choose(99), std::nullopt);
  const auto [number, slot] = *slots_.begin();
  table().Remove(number, kNow);
  EXPECT_EQ(Choose(99, kNow + ConnectionTable::kRest - absl::Seconds(1)), std::nullopt);
  EXPECT_THAT(table().UserOf(slot), Optional(0u));
  EXPECT_THAT(Choose(99, kNow + ConnectionTable::kRest), Optional(slot));
}

}  // namespace
}  // namespace h5mirror::server
