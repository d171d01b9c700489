"""Context-aware local differential privacy: blur people's answers by degrees, recover the crowd.

>>> import sfumato as sf
>>> context = sf.HighLow(["park", "café", "clinic"], sensitive=["clinic"], epsilon=1.0)
>>> mechanism = sf.mechanism_for(context)
>>> tally = mechanism.tally(mechanism.privatize([0, 1, 2, 0, 0]))
>>> tally.reports
5

``__init__.pyi`` lists the public names. Each is imported when you first use it, so that
``sfumato --help`` loads no NumPy.
"""

from functools import cache
from importlib import import_module


@cache
def _homes() -> dict[str, str]:
    """Return the module that defines each public name, in alphabetical order of the names."""
    from importlib.resources import files

    stub = files(__name__).joinpath("__init__.pyi")  # also found where the package is a zip file
    homes = {}
    for line in stub.read_text(encoding="utf-8").splitlines():
        if line.startswith("from "):
            _, home, _, name, *_ = line.split()  # from HOME import NAME as NAME
            homes[name] = home
    return dict(sorted(homes.items()))


def __getattr__(name: str) -> object:
    if name == "__all__":
        return __dir__()
    if name not in _homes():
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    home = _homes()[name]
    if home == __name__:
        return import_module(f"{home}.{name}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return list(_homes())
