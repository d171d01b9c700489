"""Draw random words, and turn them into choices with exact odds."""

from sfumato.randomness.odds import (
    LARGEST_EPSILON,
    Epsilon,
    epsilon_of_odds,
    exact_number,
    exp_bounds,
    float_above,
    float_below,
    positive_epsilon,
    within_odds,
)
from sfumato.randomness.shuffle import shuffle
from sfumato.randomness.thresholds import (
    TwoLevels,
    binary_flips,
    coin_threshold,
    two_level_index,
    two_levels,
)
from sfumato.randomness.words import (
    KEY_BYTES,
    WORDS_PER_POSITION,
    SystemWords,
    WordSource,
    fresh_key,
    reject_seed,
    require_source,
    words_at,
    words_from,
)

__all__ = [
    "KEY_BYTES",
    "LARGEST_EPSILON",
    "WORDS_PER_POSITION",
    "Epsilon",
    "SystemWords",
    "TwoLevels",
    "WordSource",
    "binary_flips",
    "coin_threshold",
    "epsilon_of_odds",
    "exact_number",
    "exp_bounds",
    "float_above",
    "float_below",
    "fresh_key",
    "positive_epsilon",
    "reject_seed",
    "require_source",
    "shuffle",
    "two_level_index",
    "two_levels",
    "within_odds",
    "words_at",
    "words_from",
]
