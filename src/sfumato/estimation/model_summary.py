"""Which models carried a decoded estimate, in one line of text."""

from collections.abc import Mapping

from sfumato.foundation.decoder_table import DECODER_TABLE

__all__ = ["decoder_with_models", "summarize_models"]

_MAX_NAMED_MODELS = 3


def summarize_models(decoder: str, details: Mapping[str, object]) -> str:
    """Return the models that carried an estimate, with their weights, largest first.

    ``details`` are those of the ``DecoderResult``. Percentages add up to 100. If there is a single
    model, only its title is returned; if the decoder does not average models, the decoder's title.

    >>> summarize_models("auto", {"models": {"neighbours": 0.104, "smooth curve": 0.896}})
    '90% smooth curve, 10% neighbours'
    >>> summarize_models("auto", {"chosen": "empirical-bayes", "share": 0.93})
    '93% empirical Bayes, 7% projection'
    >>> summarize_models("likelihood", {"gap": 0.1})
    'likelihood'
    """
    weight_of = _model_weights(details)
    ranked = sorted(weight_of.items(), key=lambda item: -item[1])
    parts = [(title, weight) for title, weight in ranked if weight > 0]
    if len(parts) > _MAX_NAMED_MODELS:
        other_weight = sum(weight for _, weight in parts[_MAX_NAMED_MODELS:])
        parts = [*parts[:_MAX_NAMED_MODELS], ("others", other_weight)]
    percentages = _round_to_percentages([weight for _, weight in parts])
    texts = []
    for (title, _), percentage in zip(parts, percentages, strict=True):
        if percentage == 100:
            return title
        if percentage > 0:
            texts.append(f"{percentage}% {title}")
    return ", ".join(texts) or _title(decoder)


def decoder_with_models(decoder: str, model_summary: str) -> str:
    """Return the name of a decoder, with its models if the name does not say it all.

    >>> decoder_with_models("auto", "90% smooth curve, 10% neighbours")
    'auto (90% smooth curve, 10% neighbours)'
    >>> decoder_with_models("projection", "projection")
    'projection'
    """
    if model_summary == _title(decoder):
        return decoder
    return f"{decoder} ({model_summary})"


def _model_weights(details: Mapping[str, object]) -> dict[str, float]:
    """Return the weight of each model by its title; empty if the decoder does not average any."""
    models = details.get("models")
    if isinstance(models, Mapping):
        return {str(title): float(weight) for title, weight in models.items()}
    chosen = details.get("chosen")
    if not isinstance(chosen, str):
        return {}
    share = details.get("share", 1.0)
    weight = share if isinstance(share, float) else 1.0
    if chosen == "projection":
        return {_title(chosen): 1.0}
    return {_title(chosen): weight, _title("projection"): 1.0 - weight}


def _title(decoder: str) -> str:
    """Return the title of a decoder; a decoder that is not in the table goes by its name."""
    return DECODER_TABLE[decoder].title if decoder in DECODER_TABLE else decoder


def _round_to_percentages(weights: list[float]) -> list[int]:
    """Round weights to percentages that add up to 100 (largest remainders)."""
    total = sum(weights)
    exact = [100 * weight / total for weight in weights]
    percentages = [int(number) for number in exact]
    by_remainder = sorted(range(len(exact)), key=lambda i: percentages[i] - exact[i])
    for index in by_remainder[: 100 - sum(percentages)]:
        percentages[index] += 1
    return percentages
