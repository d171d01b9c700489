"""The other files in deploy/: systemd's units and the dashboard."""

import json
import re
import shutil
import subprocess

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import sfumato as sf
from support.http_client import batch_of, run_aggregator
from support.page_machine import serve_has
from support.paths import ROOT
from support.stand_ins import read_unit

DEPLOY = ROOT / "deploy"
SERVICES = sorted(file.name for file in DEPLOY.glob("*.service"))
UNITS = [*SERVICES, "sfumato-backup.timer"]
SURVEY = sf.Survey("places", sf.Uniform(["park", "café"], 1))


# --- units ----------------------------------------------------------------------------------------


@pytest.fixture
def units(tmp_path):
    """The units, with programs that this machine has: systemd checks that they exist."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd is installed (on Debian: apt-get install systemd)")
    for name in UNITS:
        text = (DEPLOY / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(re.sub(r"/opt/sfumato/bin/[\w-]+", "/bin/true", text))
    return tmp_path


def analyze(*arguments):
    command = [shutil.which("systemd-analyze"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("name", UNITS)
def test_systemd_has_nothing_to_say_about_a_unit(units, name):
    result = analyze("verify", "--man=no", units / name)
    assert (result.returncode, result.stderr) == (0, "")


def test_systemd_would_complain_about_a_fault(units):
    (units / "sfumato.service").write_text("[Service]\nExecStart=/absent/program\nLimitNoFile=1\n")
    assert "LimitNoFile" in analyze("verify", "--man=no", units / "sfumato.service").stderr


@pytest.mark.parametrize("name", SERVICES)
def test_units_are_hardened(units, name):
    result = analyze("security", "--offline=true", "--threshold=20", units / name)
    assert result.returncode == 0, result.stdout  # an exposure of at most 2.0 of 10


def test_missing_hardening_is_detected(units):
    text = (units / "sfumato.service").read_text()
    (units / "sfumato.service").write_text(re.sub(r"(?m)^(Protect|Restrict|Private).*\n", "", text))
    result = analyze("security", "--offline=true", "--threshold=20", units / "sfumato.service")
    assert result.returncode != 0


def test_the_aggregator_may_open_as_many_files_as_it_asks_for():
    assert read_unit(DEPLOY / "sfumato.service")["LimitNOFILE"] == "65536"


def test_the_unit_has_options_that_exist():
    command = read_unit(DEPLOY / "sfumato.service")["ExecStart"]
    options = re.findall(r"--[a-z-]+", command)
    assert options
    assert [option for option in options if not serve_has(option)] == []


# --- the dashboard --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """The names and labels of an aggregator's samples, after an upload and a problem."""
    with run_aggregator(tmp_path_factory.mktemp("metrics"), SURVEY) as aggregator:
        aggregator.upload(batch_of(SURVEY, [1]))
        aggregator.http.get("/v1/surveys/absent")
        text = aggregator.request_with_token("/metrics").body.decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def queries_of(dashboard):
    variables = [variable["query"] for variable in dashboard["templating"]["list"]]
    texts = [query["query"] for query in variables if isinstance(query, dict)]
    return texts + [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]


@pytest.fixture(scope="module")
def dashboard():
    return json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))


def test_the_dashboard_uses_metrics_that_exist(dashboard, samples):
    used = {name for query in queries_of(dashboard) for name in re.findall(r"sfumato_\w+", query)}
    assert used <= samples.keys()
    shown = {re.sub("_(total|bucket|sum|count|created)$", "", name) for name in used}
    all_metrics = {re.sub("_(total|bucket|sum|count|created)$", "", name) for name in samples}
    assert shown == {name for name in all_metrics if name.startswith("sfumato_")}


def test_the_dashboard_uses_labels_that_exist(dashboard, samples):
    for query in queries_of(dashboard):
        names = set(re.findall(r"sfumato_\w+", query))
        labels = set().union(*(samples[name] for name in names))
        used = set(re.findall(r"(\w+)=[~\"]", query))
        for group in re.findall(r"by \(([\w, ]+)\)", query):
            used.update(group.split(", "))
        assert used <= labels, query


def test_panels_do_not_overlap(dashboard):
    taken = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + column, place["y"] + row)
            for column in range(place["w"])
            for row in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    numbers = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(numbers)) == len(numbers)
    assert all(panel["description"] for panel in dashboard["panels"])


def test_yaml_files_have_no_duplicate_keys():
    """A loader keeps the last of two equal keys, and says nothing."""
    for name in ("compose.yaml", "prometheus.yml"):
        assert duplicate_keys(yaml.compose((DEPLOY / name).read_text(encoding="utf-8"))) == []
    assert duplicate_keys(yaml.compose("a: {b: 1, b: 2}")) == ["b"]


def duplicate_keys(node):
    found = []
    if isinstance(node, yaml.MappingNode):
        keys = [key.value for key, _ in node.value]
        found += sorted({key for key in keys if keys.count(key) > 1})
        for _, value in node.value:
            found += duplicate_keys(value)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            found += duplicate_keys(value)
    return found
