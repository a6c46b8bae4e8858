"""What the exporter and the runtime of all-MiniLM-L6-v2 agree on."""

from typing import Literal

Precision = Literal["int8", "fp32"]

MODEL_NAME = "all-MiniLM-L6-v2"
# Raise it whenever the graph changes: cached exports of another version are replaced.
GRAPH_VERSION = 2

WIDTH = 384
MAX_TOKENS = 256  # the published model's window; longer texts are cut

INPUT_IDS = "input_ids"
ATTENTION_MASK = "attention_mask"
OUTPUT = "embedding"
