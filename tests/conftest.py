"""Fail skipped tests on machines where SFUMATO_REQUIRE_ALL says that everything is installed."""

import os
import signal

import pytest


def pytest_configure(config):
    """Restore Ctrl-C: background runs ignore it, and so would commands that tests interrupt."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("SFUMATO_REQUIRE_ALL"):
        report.outcome = "failed"
        report.longrepr = _explain(item, report)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    outcome = yield
    report = outcome.get_result()
    if report.outcome == "skipped" and os.environ.get("SFUMATO_REQUIRE_ALL"):
        report.outcome = "failed"
        report.longrepr = _explain(collector, report)


def _explain(node, report):
    return f"{node.nodeid} was skipped, but SFUMATO_REQUIRE_ALL is set: {report.longrepr}"
