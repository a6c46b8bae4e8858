"""A cross-encoder small enough to be written in a test: it counts the words that texts share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

WORDS = [
    "the",
    "a",
    "when",
    "does",
    "staging",
    "lose",
    "its",
    "data",
    "every",
    "night",
    "reset",
    "database",
    "parrot",
]


def write_cross_encoder(folder: Path, *, labels: int = 1) -> Path:
    """Write the model into the folder, with one label or more, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _tokenizer().save(str(folder / "tokenizer.json"))
    onnx.save(_graph(labels), str(folder / "model.onnx"))
    return folder


def _tokenizer() -> Tokenizer:
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    tokenizer = Tokenizer(WordLevel({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def _graph(labels: int) -> onnx.ModelProto:
    """Count the equal words, one of the query and one of the text; specials are below 4."""
    ids, types, mask = ("input_ids", "token_type_ids", "attention_mask")
    nodes = [
        helper.make_node("Unsqueeze", [ids, "two"], ["column"]),
        helper.make_node("Unsqueeze", [ids, "one"], ["row"]),
        helper.make_node("Equal", ["column", "row"], ["equal"]),
        helper.make_node("Greater", ["column", "specials"], ["is_word"]),
        helper.make_node("Unsqueeze", [types, "two"], ["type_column"]),
        helper.make_node("Unsqueeze", [types, "one"], ["type_row"]),
        helper.make_node("Less", ["type_column", "type_row"], ["across"]),
        helper.make_node("And", ["equal", "is_word"], ["equal_words"]),
        helper.make_node("And", ["equal_words", "across"], ["counted"]),
        helper.make_node("Cast", ["counted"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["numbers", "both"], ["shared"], keepdims=0),
        helper.make_node("Unsqueeze", ["shared", "one"], ["single"]),
        helper.make_node("Mul", ["single", "signs"], ["logits"]),
    ]
    signs = np.array([[1.0]] if labels == 1 else [[-1.0] * (labels - 1) + [1.0]], np.float32)
    constants = {
        "one": np.array([1], np.int64),
        "two": np.array([2], np.int64),
        "both": np.array([1, 2], np.int64),
        "specials": np.array(3, np.int64),
        "signs": signs,
    }
    graph = helper.make_graph(
        nodes,
        "shared-words",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "length"])
            for name in (ids, types, mask)
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", labels])],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    # An unused input is dropped by exporters; this one stays, as in a real model.
    graph.node.append(helper.make_node("Identity", [mask], ["seen"]))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
