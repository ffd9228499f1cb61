#include "server/settings/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

absl::StatusOr<Config> WithSetting(const std::string& key, const std::string& text) {
  return MakeConfig(std::vector<Setting>{{"root", "/data", "test"}, {key, text, "--flag"}});
}

TEST(ConfigTest, DefaultsAreWhatTheSampleSays) {
  const auto config = MakeConfig(std::vector<Setting>{{"root", "/data", "test"}});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->memory_max_bytes, uint64_t{1} << 30);
  EXPECT_EQ(config->durable_every, absl::Seconds(10));
  EXPECT_EQ(config->page_size_bytes, 4096u);
  EXPECT_EQ(config->page_compression, store::PageCompression::kZstd);
  EXPECT_EQ(config->umask_bits, 0027u);
  ASSERT_EQ(config->listen.size(), 1u);
  EXPECT_EQ(config->listen[0].GrpcTarget(), "127.0.0.1:7447");
}

TEST(ConfigTest, LaterSettingWins) {
  const auto config = MakeConfig(std::vector<Setting>{
      {"root", "/a", "file:1"}, {"lease_ttl", "3s", "file:2"}, {"lease_ttl", "4s", "--lease-ttl"}});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->lease_ttl, absl::Seconds(4));
}

TEST(ConfigTest, ErrorNamesKeyValueSourceAndRange) {
  EXPECT_THAT(
      Message(WithSetting("lease_ttl", "0s").status()),
      AllOf(HasSubstr("--flag"), HasSubstr("lease_ttl"), HasSubstr("\"0s\""), HasSubstr("1 h")));
  EXPECT_THAT(Message(WithSetting("memory_max", "1MiB").status()),
              AllOf(HasSubstr("memory_max"), HasSubstr("64 MiB")));
  EXPECT_THAT(Message(WithSetting("page_size", "5000").status()), HasSubstr("power of two"));
  EXPECT_THAT(Message(WithSetting("page_compression", "lz4").status()), HasSubstr("zstd or none"));
  EXPECT_THAT(Message(WithSetting("umask", "abc").status()), HasSubstr("octal"));
  EXPECT_THAT(Message(WithSetting("umask", "1000").status()), HasSubstr("0777"));
  EXPECT_THAT(Message(WithSetting("owner_of_heads", "root").status()),
              HasSubstr("must be server or acl"));
  EXPECT_THAT(Message(WithSetting("owner_of_heads", "user").status()),
              HasSubstr("its older versions"));
  EXPECT_THAT(Message(WithSetting("max_sessions", "0").status()), HasSubstr("1..100000"));
  EXPECT_THAT(Message(WithSetting("log_level", "loud").status()), HasSubstr("debug"));
}

TEST(ConfigTest, RootMustBeSet) {
  EXPECT_THAT(Message(MakeConfig({}).status()), HasSubstr("--root DIR"));
}

TEST(ConfigTest, PlainTextOnANetworkAddressIsRefusedWithTheWayOut) {
  const absl::Status refused = WithSetting("listen", "0.0.0.0:7447").status();
  EXPECT_THAT(Message(refused),
              AllOf(HasSubstr("0.0.0.0:7447"), HasSubstr("h5mirrord init"), HasSubstr("ssh -L")));
}

TEST(ConfigTest, HttpIsOffUnlessItIsAskedFor) {
  EXPECT_FALSE(MakeConfig({{"root", "/data", "test"}})->HasHttp());
  EXPECT_FALSE(WithSetting("http_listen", "")->HasHttp());
  const auto config = WithSetting("http_listen", "127.0.0.1:7448,unix:/run/h5m-http");
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->http_listen.size(), 2u);
  EXPECT_EQ(config->http_listen[0].port, 7448);
  EXPECT_FALSE(WithSetting("http_listen", "127.0.0.1").ok());
}

TEST(ConfigTest, HttpOnANetworkAddressWantsTlsAndTokensToo) {
  std::vector<Setting> settings = {{"root", "/data", "test"},
                                   {"http_listen", "0.0.0.0:7448", "test"}};
  EXPECT_THAT(Message(MakeConfig(settings).status()),
              AllOf(HasSubstr("http_listen = \"0.0.0.0:7448\""), HasSubstr("h5mirrord init")));
  settings.push_back({"tls_cert", "c.pem", "test"});
  settings.push_back({"tls_key", "k.pem", "test"});
  EXPECT_FALSE(MakeConfig(settings).ok());
  settings.push_back({"tokens_file", "tokens", "test"});
  EXPECT_TRUE(MakeConfig(settings).ok());
}

TEST(ConfigTest, NetworkAddressWithTlsAndTokensIsTaken) {
  std::vector<Setting> settings = {{"root", "/data", "test"},
                                   {"listen", "[::]:7447", "test"},
                                   {"tls_cert", "c.pem", "test"},
                                   {"tls_key", "k.pem", "test"}};
  EXPECT_FALSE(MakeConfig(settings).ok());  // TLS alone is not enough.
  settings.push_back({"tokens_file", "tokens", "test"});
  const auto config = MakeConfig(settings);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->tls_cert.is_absolute());
}

TEST(ConfigTest, ListenersThatCollideAreNamed) {
  EXPECT_THAT(Message(WithSetting("http_listen", "localhost:7447").status()),
              AllOf(HasSubstr("listen = \"127.0.0.1:7447\" and http_listen = \"localhost:7447\""),
                    HasSubstr("another port")));
  EXPECT_THAT(Message(WithSetting("listen", "unix:/s,127.0.0.1:1,unix:/a/../s").status()),
              AllOf(HasSubstr("listen = \"unix:/s\" and listen = \"unix:/a/../s\""),
                    HasSubstr("another path")));
  EXPECT_THAT(
      Message(MakeConfig(std::vector<Setting>{{"root", "/data", "test"},
                                              {"http_listen", "127.0.0.1:9447", "test"},
                                              {"metrics_listen", "127.0.0.1:9447", "test"}})
                  .status()),
      HasSubstr("http_listen = \"127.0.0.1:9447\" and metrics_listen = \"127.0.0.1:9447\""));
  EXPECT_TRUE(WithSetting("listen", "127.0.0.1:0,127.0.0.1:0").ok());
}

TEST(ConfigTest, TheAuditLogMayBeStandardOutput) {
  const auto to_stdout = MakeConfig({{"root", "/data", "test"}, {"audit_log", "-", "test"}});
  ASSERT_TRUE(to_stdout.ok()) << to_stdout.status();
  EXPECT_EQ(to_stdout->audit_log, "-");
  const auto to_file = MakeConfig({{"root", "/data", "test"}, {"audit_log", "a.jsonl", "test"}});
  ASSERT_TRUE(to_file.ok()) << to_file.status();
  EXPECT_TRUE(to_file->audit_log.is_absolute());
}

TEST(ConfigTest, WindowsAreProbedForTheNetworkUnlessSaidOtherwise) {
  Config config;
  config.listen = *ParseListenList("127.0.0.1:1,unix:/s");
  EXPECT_FALSE(config.ProbesWindows());
  config.listen = *ParseListenList("127.0.0.1:1,0.0.0.0:2");
  EXPECT_TRUE(config.ProbesWindows());
  config.memory_max_bytes = uint64_t{256} << 20;
  EXPECT_FALSE(config.ProbesWindows());
  EXPECT_FALSE(WithSetting("window_probe", "off")->ProbesWindows());
  EXPECT_TRUE(WithSetting("window_probe", "on")->ProbesWindows());
  EXPECT_THAT(Message(WithSetting("window_probe", "yes").status()), HasSubstr("auto, on, off"));
}

TEST(ConfigTest, CertificateWithoutKeyIsRefused) {
  EXPECT_THAT(Message(WithSetting("tls_cert", "c.pem").status()), HasSubstr("tls_key"));
}

TEST(ConfigTest, SignedTokensWantKeysIssuerAndAudience) {
  const auto make = [](const std::string& keys, const std::string& issuer,
                       const std::string& audience) {
    return MakeConfig(std::vector<Setting>{{"root", "/data", "test"},
                                           {"jwt_keys", keys, "test"},
                                           {"jwt_issuer", issuer, "test"},
                                           {"jwt_audience", audience, "test"}});
  };
  EXPECT_TRUE(make("", "", "").ok());
  EXPECT_THAT(Message(make("k.json", "", "a").status()), HasSubstr("jwt_issuer"));
  EXPECT_THAT(Message(make("k.json", "https://i", "").status()), HasSubstr("jwt_audience"));
  EXPECT_THAT(Message(make("", "https://i", "a").status()), HasSubstr("JWKS"));
  auto config = make("k.json", "https://i", "a");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->jwt_user_claim, "sub");
  ASSERT_EQ(WarningsOf(*config).size(), 1U);
  EXPECT_THAT(WarningsOf(*config)[0], HasSubstr("may do everything"));
  config->access.emplace_back();
  EXPECT_TRUE(WarningsOf(*config).empty());
}

TEST(ConfigTest, AServerThatIsOpenToItsHostSaysSo) {
  const auto is_open = ElementsAre(AllOf(HasSubstr("= \"127.0.0.1:"), HasSubstr("every user of")));
  EXPECT_THAT(WarningsOf(*WithSetting("lease_ttl", "5s")), is_open) << "the default address";
  EXPECT_THAT(WarningsOf(*WithSetting("listen", "unix:/run/s,127.0.0.1:7447")), is_open);
  auto config = WithSetting("listen", "unix:/run/h5mirror.sock");
  EXPECT_THAT(WarningsOf(*config), IsEmpty());
  config->http_listen = {*ParseListenAddress("127.0.0.1:7448")};
  EXPECT_THAT(WarningsOf(*config), ElementsAre(AllOf(HasSubstr("http_listen = \"127.0.0.1:7448\""),
                                                     HasSubstr("can read every"))));
  config->access.emplace_back();
  EXPECT_THAT(WarningsOf(*config), IsEmpty()) << "the tables decide";
  EXPECT_THAT(WarningsOf(*WithSetting("tokens_file", "/etc/h5mirror/tokens")), IsEmpty());
}

TEST(ConfigTest, OwnersOfHeadsWantUsersThatAreKnown) {
  auto config = WithSetting("owner_of_heads", "acl");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->owner_of_heads, store::HeadOwner::kAcl);
  EXPECT_THAT(WarningsOf(*config), Contains(HasSubstr("no writer is known as a user")));
  config->access.emplace_back();
  EXPECT_EQ(WarningsOf(*config).size(), 1u) << "no Unix socket";
  config->listen = {*ParseListenAddress("unix:/run/h5mirror.sock")};
  EXPECT_THAT(WarningsOf(*config), IsEmpty());
}

TEST(ConfigTest, MetricsStayOnLoopback) {
  EXPECT_TRUE(WithSetting("metrics_listen", "127.0.0.1:9447").ok());
  EXPECT_THAT(Message(WithSetting("metrics_listen", "0.0.0.0:9447").status()),
              HasSubstr("loopback"));
}

TEST(ConfigTest, UnknownKeyIsNamedWithTheNearestOne) {
  TestDirectory directory;
  const auto path = directory.Write("c.toml", "root = \"/data\"\nmemory_maxx = \"1GiB\"\n");
  EXPECT_THAT(Message(ReadConfigFile(path).status()),
              AllOf(HasSubstr("c.toml:2"), HasSubstr("memory_maxx"), HasSubstr("\"memory_max\"")));
}

// Names, units and limits are those of H5F_vfd_swmr_config_t.
TEST(ConfigTest, TickLenAndMaxLagAreThoseOfVfdSwmr) {
  TestDirectory directory;
  const auto settings =
      ReadConfigFile(directory.Write("c.toml", "root = \"/data\"\ntick_len = 4\nmax_lag = 700\n"));
  ASSERT_TRUE(settings.ok()) << settings.status();
  const auto config = MakeConfig(*settings);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->tick_len, absl::Milliseconds(400));
  EXPECT_EQ(config->snapshot_keep, absl::Seconds(280));
  // Never less than snapshot_keep.
  EXPECT_EQ(WithSetting("max_lag", "3")->snapshot_keep, absl::Seconds(60));
  EXPECT_EQ(WithSetting("tick_len", "250ms")->tick_len, absl::Milliseconds(250));
  EXPECT_THAT(Message(WithSetting("max_lag", "900000").status()), HasSubstr("24 h at most"));
  EXPECT_THAT(Message(WithSetting("max_lag", "2").status()), HasSubstr("3..1000000"));
  EXPECT_THAT(Message(WithSetting("tick_len", "0").status()), HasSubstr("tenths of a second"));
  EXPECT_THAT(Message(WithSetting("tick_len", "36001").status()), HasSubstr("1 ms..1 h"));
}

TEST(ConfigTest, OtherFieldsOfVfdSwmrAreUnknownKeys) {
  TestDirectory directory;
  const auto path = directory.Write("c.toml", "root = \"/data\"\nmd_pages_reserved = 128\n");
  EXPECT_THAT(Message(ReadConfigFile(path).status()),
              AllOf(HasSubstr("c.toml:2: unknown key"), HasSubstr("shows all keys")));
}

TEST(ConfigTest, BadTomlNamesFileAndLine) {
  TestDirectory directory;
  const auto path = directory.Write("c.toml", "root = \"/data\"\nlisten = [\n");
  EXPECT_THAT(Message(ReadConfigFile(path).status()), HasSubstr("c.toml:"));
  EXPECT_TRUE(absl::IsNotFound(ReadConfigFile(directory.path() / "absent").status()));
}

TEST(ConfigTest, NumbersAndArraysNeedNoQuotes) {
  TestDirectory directory;
  const auto path = directory.Write(
      "c.toml", "root = \"/d\"\nmemory_max = 134217728\nlisten = [\"127.0.0.1:1\", \"unix:/s\"]\n");
  const auto settings = ReadConfigFile(path);
  ASSERT_TRUE(settings.ok()) << settings.status();
  const auto config = MakeConfig(*settings);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->memory_max_bytes, uint64_t{128} << 20);
  EXPECT_EQ(config->listen.size(), 2u);
}

TEST(ConfigTest, AnArchiveIsADirectoryOrABucket) {
  EXPECT_TRUE(WithSetting("archive", "").ok());
  EXPECT_FALSE(WithSetting("archive", "")->HasArchive());
  EXPECT_TRUE(WithSetting("archive", "dir:/mnt/archive")->HasArchive());
  EXPECT_TRUE(WithSetting("archive", "s3://lab-history/node7?endpoint=https://s3:9000").ok());
  const std::string wrong = Message(WithSetting("archive", "/mnt/archive").status());
  EXPECT_THAT(wrong, AllOf(HasSubstr("archive"), HasSubstr("/mnt/archive"), HasSubstr("--flag"),
                           HasSubstr("dir:/mnt/archive")));
  const std::string keys = Message(WithSetting("archive", "s3://bucket/a?secret_key=abc").status());
  EXPECT_THAT(keys, HasSubstr("\"secret_key\" is not one of endpoint, region, credentials, ca"));
}

TEST(ConfigTest, AnArchiveLiesOutsideOfTheRoot) {
  for (const char* inside : {"dir:/data", "dir:/data/archive", "dir:/data/a/../archive"}) {
    EXPECT_THAT(Message(WithSetting("archive", inside).status()), HasSubstr("lies in the root"));
  }
  EXPECT_TRUE(WithSetting("archive", "dir:/data2").ok());
}

TEST(ConfigTest, ArchivingHasItsLimits) {
  EXPECT_EQ(WithSetting("archive_after", "30d")->archive_after, absl::Hours(30 * 24));
  EXPECT_EQ(WithSetting("archive_after", "0")->archive_after, absl::ZeroDuration());
  EXPECT_EQ(WithSetting("archive_rate", "0")->archive_rate, 0u);
  EXPECT_THAT(Message(WithSetting("archive_rate", "1MiB").status()), HasSubstr("4MiB..1TiB"));
  EXPECT_FALSE(WithSetting("archive_every", "0").ok());
  EXPECT_FALSE(WithSetting("archive_local", "-1").ok());
}

TEST(ConfigTest, OctalNumbersWantQuotes) {
  TestDirectory directory;
  const auto path = directory.Write("c.toml", "umask = 0o027\n");
  EXPECT_THAT(Message(ReadConfigFile(path).status()),
              AllOf(HasSubstr("umask"), HasSubstr("quotes")));
}

TEST(ConfigTest, KeyOfTheWrongKindIsNamed) {
  TestDirectory directory;
  const auto path = directory.Write("c.toml", "[listen]\nport = 1\n");
  EXPECT_THAT(Message(ReadConfigFile(path).status()), HasSubstr("listen"));
}

// The sample with its commented lines switched on: every key is there, and loads.
TEST(ConfigTest, SampleShowsEveryKeyWithItsDefault) {
  std::ifstream sample(H5M_SAMPLE_CONFIG);
  ASSERT_TRUE(sample) << H5M_SAMPLE_CONFIG;
  std::ostringstream text;
  for (std::string line; std::getline(sample, line);) {
    const bool is_key = line.size() > 1 && line[0] == '#' && line[1] != ' ' && line[1] != '#';
    text << (is_key ? line.substr(1) : line) << "\n";
  }
  TestDirectory directory;
  const auto settings = ReadConfigFile(directory.Write("sample.toml", text.str()));
  ASSERT_TRUE(settings.ok()) << settings.status();
  for (const ConfigKey& key : ConfigKeys()) {
    EXPECT_NE(text.str().find("\n" + std::string(key.name) + " = "), std::string::npos) << key.name;
  }
  const auto from_sample = MakeConfig(*settings);
  const auto defaults = MakeConfig(std::vector<Setting>{{"root", "/var/lib/h5mirror", "test"}});
  ASSERT_TRUE(from_sample.ok()) << from_sample.status();
  EXPECT_EQ(DescribeConfig(*from_sample), DescribeConfig(*defaults));
}

TEST(ConfigTest, TheTablesOfTheSampleAreRight) {
  std::ifstream sample(H5M_SAMPLE_CONFIG);
  std::string text = "root = \"/var/lib/h5mirror\"\n";
  bool is_table = false;
  int tables = 0;
  for (std::string line; std::getline(sample, line);) {
    const bool begins = line.starts_with("# [[");
    tables += begins ? 1 : 0;
    is_table = begins || (is_table && line.starts_with("# ") && line.find(" = ") != line.npos);
    if (is_table) text += line.substr(2) + "\n";
  }
  EXPECT_GE(tables, 8);
  TestDirectory directory;
  const auto settings = ReadConfigFile(directory.Write("sample.toml", text));
  ASSERT_TRUE(settings.ok()) << settings.status();
  EXPECT_TRUE(MakeConfig(*settings).ok()) << MakeConfig(*settings).status();
}

}  // namespace
}  // namespace h5mirror::server
