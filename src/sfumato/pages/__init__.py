"""HTML pages: reports, privacy labels, plans, designs, and the pages that an aggregator serves.

``__init__.pyi`` lists the public names. Each is imported on first use, so that using one
page does not load the others.
"""

from sfumato.foundation import load_name, public_names


def __getattr__(name: str) -> object:
    return load_name(__name__, name)


def __dir__() -> list[str]:
    return public_names(__name__)
