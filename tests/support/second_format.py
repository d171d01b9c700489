"""Resolved surveys of format 1, rewritten by hand in format 2: the package is not asked."""

import copy


def to_format_2(data, question="answer"):
    """Return the content of a resolved survey, or of a certificate file, in format 2."""
    data = copy.deepcopy(data)
    promise = data["promise"]
    context = promise.pop("context")
    promise.update(
        format=2,
        questions=[{"context": context, "missing": None, "name": question}],
        cap=None,
        cohorts=1,
        collection="plain",
        invitations=None,
        learn=None,
        public=[],
    )
    if "about" in data:
        texts = {"labels": None, "text": "", "title": ""}
        data["about"].update(questions=[texts], reports_per_upload=None, translations={})
    return data
