"""Programs for people who work on Sfumato. None of them is part of the package."""
