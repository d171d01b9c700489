"""Where everything was to be installed, nothing may be skipped."""

import os
import signal

import pytest


def pytest_configure(config):
    """Commands are interrupted in tests: a run in the background ignores that, and what it starts would too."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("SFUMATO_REQUIRE_ALL"):
        report.outcome = "failed"
        report.longrepr = (
            f"{item.nodeid} was skipped although this machine was set up for it: {report.longrepr}"
        )


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    outcome = yield
    report = outcome.get_result()
    if report.outcome == "skipped" and os.environ.get("SFUMATO_REQUIRE_ALL"):
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped although this machine was set up for it: {report.longrepr}"
