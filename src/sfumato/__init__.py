"""Context-aware local differential privacy: randomize answers and estimate a distribution.

>>> import sfumato as sf
>>> context = sf.HighLow(["park", "café", "clinic"], sensitive=["clinic"], epsilon=1.0)
>>> mechanism = sf.mechanism_for(context)
>>> tally = mechanism.tally(mechanism.privatize([0, 1, 2, 0, 0]))
>>> tally.reports
5

``__init__.pyi`` lists the public names. Each name is imported on first use, so
``sfumato --help`` does not load NumPy.
"""


def __getattr__(name: str) -> object:
    from sfumato.foundation import load_name

    if name == "__all__":
        return __dir__()
    if name == "__version__":
        from sfumato.foundation.installation import package_version

        return package_version()
    return load_name(__name__, name)


def __dir__() -> list[str]:
    from sfumato.foundation import public_names

    return public_names(__name__)
