"""Code shared by all packages: array types, canonical JSON, atomic files, exact linear algebra.

The functions in this module import a package's public names on first use. The package's
``__init__.pyi`` lists those names, both for type checkers and for these functions.
"""

from functools import cache
from importlib import import_module

__all__ = ["load_name", "public_names"]


def public_names(package: str) -> list[str]:
    """Return the public names of a package, in alphabetical order."""
    return sorted(_defining_modules(package))


def load_name(package: str, name: str) -> object:
    """Import a public name from the module that defines it, and return the object."""
    if name not in _defining_modules(package):
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    module = _defining_modules(package)[name]
    if module == package:
        return import_module(f"{module}.{name}")
    return getattr(import_module(module), name)


@cache
def _defining_modules(package: str) -> dict[str, str]:
    """Return the module that defines each public name, by name."""
    from importlib.resources import files  # deferred: it takes milliseconds to import

    stub = files(package).joinpath("__init__.pyi")  # also works inside a zip file
    modules = {}
    for line in stub.read_text(encoding="utf-8").splitlines():
        if line.startswith("from "):
            _, module, _, name, *_ = line.split()  # from MODULE import NAME as NAME
            modules[name] = module
    return modules
