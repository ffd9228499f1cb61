"""The packages' files for Prometheus and Grafana: alerts that fire, and queries that a real Prometheus answers."""

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from harness import paths
from harness.metrics import Metrics, free_port
from harness.process import Process, wait_until

DEPLOY = paths.SOURCE / "deploy"
RULES = DEPLOY / "prometheus" / "h5mirror.rules.yml"
ALERTS = paths.SOURCE / "tests" / "e2e" / "alerts.yml"

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="takes Debian's package prometheus")


def promtool(directory, *arguments) -> str:
    done = subprocess.run(["promtool", *arguments], cwd=directory, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_each_alert_fires_and_not_before(tmp_path):
    for file in (RULES, ALERTS):
        shutil.copy(file, tmp_path)
    promtool(tmp_path, "check", "rules", RULES.name)
    promtool(tmp_path, "test", "rules", ALERTS.name)
    names = re.findall(r"- alert: (\w+)", RULES.read_text())
    assert names and names == re.findall(r"- name: (\w+)", ALERTS.read_text()), "each alert has a test"


def test_alerts_lead_to_pages_that_are_there():
    pages = re.findall(r"page: (\S+)", RULES.read_text())
    assert len(pages) == RULES.read_text().count("- alert:")
    for page in pages:
        file, _, section = page.partition("#")
        assert (paths.SOURCE / file).is_file(), page
        assert not section or section in sections(paths.SOURCE / file), page


def sections(page: Path) -> set[str]:
    """The anchors of a page's headings, as a browser of the repository makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


class Prometheus:
    """A real one, which scrapes the site's server as the shipped files say."""

    def __init__(self, site, port: int):
        directory = site.directory / "prometheus"
        directory.mkdir()
        scrape = (DEPLOY / "prometheus" / "h5mirror.scrape.yml").read_text()
        assert "127.0.0.1:9447" in scrape and "scrape_interval: 15s" in scrape
        scrape = scrape.replace("127.0.0.1:9447", f"127.0.0.1:{port}").replace("scrape_interval: 15s",
                                                                              "scrape_interval: 1s")
        config = directory / "prometheus.yml"
        config.write_text("global:\n  evaluation_interval: 1s\nrule_files:\n  - " + str(RULES) + "\nscrape_configs:\n"
                          + "".join(f"  {line}\n" for line in scrape.splitlines()))
        promtool(directory, "check", "config", config)
        self.port = free_port()
        self.process = Process(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'data'}",
                                f"--web.listen-address=127.0.0.1:{self.port}"], site.logs, name="prometheus")
        site.beside.append(self.process)

    def get(self, path: str, **parameters) -> dict:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)["data"]

    def count(self, query: str) -> int:
        """How many series answer."""
        return len(self.get("query", query=query)["result"])

    def scraped(self, times: int) -> bool:
        assert self.process.running(), "prometheus has ended"
        try:
            return self.count(f'count_over_time(up{{job="h5mirror"}}[10m]) >= {times} and up == 1') == 1
        except OSError:
            return False


def test_every_panel_of_the_dashboard_has_data_and_a_healthy_server_no_alert(site):
    metrics = Metrics(site)
    site.py("""
        for i in range(3):
            with h5py.File(f"{i}.h5", "w") as f:
                f["x"] = np.arange(1000)
    """)
    prometheus = Prometheus(site, metrics.port)
    site.json("ls")
    wait_until(lambda: prometheus.scraped(4), "prometheus has scraped nothing", 120)
    dashboard = json.loads((DEPLOY / "grafana" / "h5mirror.json").read_text())
    queries = [(panel["title"], target["expr"]) for panel in dashboard["panels"]
               for target in panel.get("targets", [])]
    assert len(queries) > 20
    empty = {query for _, query in queries
             if prometheus.count(query.replace("$job", "h5mirror").replace("$instance", ".*")) == 0}
    # A counter by rule is there from the first version on that the server drops.
    assert [re.findall(r"h5mirror_\w+", query) for query in empty] == [["h5mirror_server_versions_dropped_total"]]
    for variable in dashboard["templating"]["list"]:
        for metric in re.findall(r"label_values\((\w+)", str(variable["query"])):
            assert prometheus.count(metric) == 1
    groups = prometheus.get("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) == RULES.read_text().count("- alert:")
    # Pending ones may be: on a machine that runs other tests the disk may fill fast, for less than an hour.
    firing = [rule["name"] for rule in rules for alert in rule["alerts"] if alert["state"] == "firing"]
    assert not firing and {rule["health"] for rule in rules} == {"ok"}, rules
