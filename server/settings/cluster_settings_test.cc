#include "server/settings/cluster_settings.h"

#include "base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/settings/config.h"
#include "server/settings/listen_address.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kCeph[] = "root = \"cephfs:/data\"\n";
constexpr char kHere[] = "root = \"/data\"\n";

class ClusterSettingsTest : public ::testing::Test {
 protected:
  absl::StatusOr<Config> Parse(const std::string& text) {
    directory_.Write("h5mirrord.toml", text);
    const auto settings = ReadConfigFile(directory_.path() / "h5mirrord.toml");
    if (!settings.ok()) return settings.status();
    return MakeConfig(*settings);
  }
  std::string Error(const std::string& text) { return std::string(Parse(text).status().message()); }
  std::string ErrorOf(const std::string& keys) {
    return Error(std::string(kHere) + "[cluster]\nregistry = \"file:/r\"\nnode = \"a\"\n" + keys);
  }

  TestDirectory directory_;
};

TEST_F(ClusterSettingsTest, WithoutTheTableThereIsNoCluster) {
  const auto config = Parse(kHere);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_FALSE(config->cluster.has_value());
}

TEST_F(ClusterSettingsTest, ATableIsRead) {
  const auto config = Parse(std::string(kCeph) + R"(
[cluster]
registry = "rados://h5mirror/registry"
node = "node-7"
address = "node7.lab:7447"
cells = ["bl7", "lab/anna"]
beat = "500ms"
lease = "2s"
)");
  ASSERT_TRUE(config.ok()) << config.status();
  const ClusterSettings& cluster = *config->cluster;
  EXPECT_EQ(cluster.kind, RegistryKind::kRados);
  EXPECT_EQ(cluster.pool, "h5mirror");
  EXPECT_EQ(cluster.object, "registry");
  EXPECT_EQ(cluster.node, "node-7");
  EXPECT_EQ(cluster.address, "node7.lab:7447");
  EXPECT_THAT(cluster.cells, ElementsAre("bl7", "lab/anna"));
  const cluster::Timing timing = cluster.Timing();
  EXPECT_EQ(timing.beat_every, absl::Milliseconds(500));
  EXPECT_EQ(timing.valid_for, absl::Seconds(2));
  EXPECT_EQ(timing.silent_for, absl::Milliseconds(2500));
  EXPECT_EQ(timing.silent_beats, 5);
}

TEST_F(ClusterSettingsTest, TheDefaultsAreThoseOfTheProtocol) {
  const auto config =
      Parse(std::string(kHere) + "[cluster]\nregistry = \"file:/r\"\nnode = \"a\"\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->cluster->cells, ElementsAre(""));
  const cluster::Timing timing = config->cluster->Timing(), usual;
  EXPECT_EQ(timing.beat_every, usual.beat_every);
  EXPECT_EQ(timing.valid_for, usual.valid_for);
  EXPECT_EQ(timing.silent_for, usual.silent_for);
  EXPECT_EQ(timing.silent_beats, usual.silent_beats);
  EXPECT_EQ(timing.fence_patience, usual.fence_patience);
  EXPECT_EQ(timing.claim_patience, usual.claim_patience);
  EXPECT_EQ(timing.reopen_after, usual.reopen_after);
}

TEST_F(ClusterSettingsTest, ADescriptionIsATableAgain) {
  const std::string text =
      "[cluster]\nregistry = \"file:/r\"\nnode = \"a\"\naddress = \"h:1\"\ncells = [\"x\", "
      "\"y\"]\n";
  const auto config = Parse(kHere + text);
  ASSERT_TRUE(config.ok()) << config.status();
  const std::string described = Describe(*config->cluster);
  EXPECT_THAT(described, HasSubstr("cells = [\"x\", \"y\"]"));
  const auto again = Parse(kHere + described);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Describe(*again->cluster), described);
}

TEST_F(ClusterSettingsTest, WrongValuesAreNamed) {
  EXPECT_THAT(Error(std::string(kHere) + "[cluster]\nnode = \"a\"\n"), HasSubstr("no registry"));
  EXPECT_THAT(Error(std::string(kHere) + "[cluster]\nregistry = \"file:/r\"\n"),
              HasSubstr("no node"));
  EXPECT_THAT(Error(std::string(kHere) + "[cluster]\nregistry = \"etcd:/r\"\nnode = \"a\"\n"),
              HasSubstr("must be rados://POOL/OBJECT"));
  EXPECT_THAT(Error("[[cluster]]\nnode = \"a\"\n"), HasSubstr("one pair of brackets"));
  EXPECT_THAT(ErrorOf("nods = \"b\"\n"), HasSubstr("did you mean \"node\""));
  EXPECT_THAT(ErrorOf("address = \"h:x\"\n"), HasSubstr("address"));
  EXPECT_THAT(ErrorOf("cells = [\"../x\"]\n"), HasSubstr("is no cell"));
  EXPECT_THAT(ErrorOf("cells = [\"x\", \"x/y\"]\n"), HasSubstr("lies in the cell"));
  EXPECT_THAT(ErrorOf("cells = [\"x\", \"x\"]\n"), HasSubstr("lies in the cell"));
  EXPECT_THAT(ErrorOf("beat = \"1ms\"\n"), HasSubstr("must be in"));
  EXPECT_THAT(ErrorOf("lease = \"2m\"\n"), HasSubstr("must be in"));
  EXPECT_THAT(ErrorOf("beat = \"2s\"\n"), HasSubstr("must be 3 times beat"));
}

// Each would leave a lost server's writes on the disk, or two servers on a root.
TEST_F(ClusterSettingsTest, ARootThatNobodyIsFencedFromIsRefused) {
  const std::string rados = "[cluster]\nregistry = \"rados://p/o\"\nnode = \"a\"\n";
  const std::string file = "[cluster]\nregistry = \"file:/r\"\nnode = \"a\"\n";
  EXPECT_THAT(Error(kHere + rados), HasSubstr("in CephFS only"));
  EXPECT_THAT(Error(kCeph + file), HasSubstr("fences nobody"));
  EXPECT_THAT(Error(std::string(kHere) + "root_fencing = \"none\"\n" + file),
              HasSubstr("one server alone"));
}

TEST_F(ClusterSettingsTest, AQuotaThatSpansCellsIsRefused) {
  const std::string cells =
      "[cluster]\nregistry = \"file:/r\"\nnode = \"a\"\ncells = [\"x\", \"y\"]\n";
  const std::string quota = "[[quota]]\nmax_files = 5\ndirectory = ";
  EXPECT_THAT(Error(kHere + cells + quota + "\"\"\n"), HasSubstr("of its own"));
  EXPECT_EQ(Error(kHere + cells + quota + "\"x/${user}\"\n"), "");
}

class HttpAddressTest : public ClusterSettingsTest {
 protected:
  // Where each address of http_listen has got a port.
  std::string Address(const std::string& keys, const std::string& table,
                      const std::vector<int>& ports) {
    const auto config = Parse(std::string(kHere) + keys +
                              "[cluster]\nregistry = \"file:/r\"\nnode = \"a\"\n" + table);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() ? HttpAddress(*config, ports) : "";
  }
};

TEST_F(HttpAddressTest, TheFirstOnTcpIsTold) {
  EXPECT_EQ(Address("", "", {}), "");
  EXPECT_EQ(Address("http_listen = \"unix:/r/h\"\n", "", {0}), "");
  EXPECT_EQ(Address("http_listen = [\"unix:/r/h\", \"127.0.0.1:0\"]\n", "", {0, 4321}),
            "http://127.0.0.1:4321");
}

TEST_F(HttpAddressTest, NobodyIsSentToAPortOfHisOwnMachine) {
  const std::string listen = "http_listen = \"[::1]:0\"\n";
  for (const char* afar : {"node7:7447", "node7", "10.0.0.7:7447"}) {
    const std::string table = StrCat("address = \"", afar, "\"\n");
    EXPECT_EQ(Address(listen, table, {4321}), "") << afar;
  }
  for (const char* near : {"127.0.0.1:7447", "localhost", "[::1]:7447"}) {
    const std::string table = StrCat("address = \"", near, "\"\n");
    EXPECT_EQ(Address(listen, table, {4321}), "http://[::1]:4321") << near;
  }
}

TEST_F(HttpAddressTest, AUrlOfTheTableGoesFirst) {
  const std::string url = "https://files.lab:7448";
  EXPECT_EQ(Address("http_listen = \"127.0.0.1:0\"\n", "http_address = \"" + url + "\"\n", {4321}),
            url);
}

TEST_F(HttpAddressTest, AnAddressForOtherMachinesHasTheHostOfClients) {
  const auto config =
      Parse(std::string(kHere) +
            "[cluster]\nregistry = \"file:/r\"\nnode = \"a\"\naddress = \"node7.lab\"\n");
  ASSERT_TRUE(config.ok()) << config.status();
  Config open = *config;
  open.http_listen = *ParseListenList("0.0.0.0:0");
  EXPECT_EQ(HttpAddress(open, std::vector<int>{7448}), "http://node7.lab:7448");
  open.cluster->address = "[fd00::7]:7447";
  EXPECT_EQ(HttpAddress(open, std::vector<int>{7448}), "http://[fd00::7]:7448");
  open.cluster->address = "";
  EXPECT_EQ(HttpAddress(open, std::vector<int>{7448}), "") << "nobody comes to 0.0.0.0";
  open.tls_cert = "c.pem";
  open.http_listen = *ParseListenList("10.0.0.7:0");
  EXPECT_EQ(HttpAddress(open, std::vector<int>{7448}), "https://10.0.0.7:7448");
}

TEST_F(HttpAddressTest, AUrlThatIsNoneIsRefused) {
  for (const char* bad : {"node7:7448", "ftp://node7", "https://", "https://node7/x",
                          "https://me@node7", "https://node7:x", "https://unix:/x"}) {
    EXPECT_THAT(ErrorOf(std::string("http_address = \"") + bad + "\"\n"),
                HasSubstr("must be https://HOST:PORT"))
        << bad;
  }
  EXPECT_THAT(ErrorOf("http_address = \"https://node7:7448\"\n"), HasSubstr("no http_listen"));
}

}  // namespace
}  // namespace h5mirror::server
