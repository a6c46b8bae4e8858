"""How large the activations of all-MiniLM-L6-v2 become: what int8 quantisation needs to know.

Largest magnitudes over 700 texts (conversation, JSON, source code, several languages, emoji,
repeated and random characters), per layer. They belong to the weights, and hardly to the texts: the
inputs' maxima come from the [CLS] token and agree within 0.5 % between the kinds of text. Beyond
them a value saturates.
"""

from collections.abc import Mapping

# What enters a layer (its query, key and value products).
LAYER_INPUT_MAX = (6.4, 8.2, 8.0, 9.7, 10.6, 10.0)

# What the attention mixed together, before its output product: at most the largest value vector.
CONTEXT_MAX = (4.0, 4.0, 4.0, 4.0, 4.0, 4.0)

# What enters the wide product, between attention and feed-forward: all channels but a few stay
# small. The few ("outlier channels", here mostly 99) are divided by their ratio before
# quantisation, their weights multiplied by it, as in SmoothQuant (Xiao et al. 2022,
# arXiv:2211.10438, section 4).
MIDDLE_MAX = 5.5
MIDDLE_OUTLIERS: tuple[Mapping[int, float], ...] = (
    {99: 28.6, 63: 11.5, 267: 7.1, 303: 6.7, 157: 6.2},
    {99: 30.4, 63: 8.8, 267: 8.3, 223: 7.7, 157: 7.5, 338: 6.3},
    {99: 27.8, 223: 14.1, 63: 7.8, 157: 6.9, 338: 6.7},
    {99: 28.9, 223: 15.8, 63: 10.0, 157: 6.6, 338: 6.3},
    {99: 21.7, 223: 13.5, 127: 13.5, 63: 8.5, 157: 6.2},
    {99: 13.4, 223: 12.8, 319: 9.6, 127: 7.9},
)
