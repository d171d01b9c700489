"""What every package uses: array types, canonical JSON, atomic files, projections, exact solving.

The functions here import the public names of a package when they are first used. The package's
``__init__.pyi`` lists them. Type checkers read that list, and so does this module.
"""

from functools import cache
from importlib import import_module

__all__ = ["load_name", "public_names"]


def public_names(package: str) -> list[str]:
    """Return the public names of a package, in alphabetical order."""
    return sorted(_homes(package))


def load_name(package: str, name: str) -> object:
    """Import a public name from the module that defines it."""
    if name not in _homes(package):
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    home = _homes(package)[name]
    if home == package:
        return import_module(f"{home}.{name}")
    return getattr(import_module(home), name)


@cache
def _homes(package: str) -> dict[str, str]:
    """Return the module that defines each public name."""
    from importlib.resources import files  # takes milliseconds to import

    stub = files(package).joinpath("__init__.pyi")  # works in a zip file too
    homes = {}
    for line in stub.read_text(encoding="utf-8").splitlines():
        if line.startswith("from "):
            _, home, _, name, *_ = line.split()  # from HOME import NAME as NAME
            homes[name] = home
    return homes
