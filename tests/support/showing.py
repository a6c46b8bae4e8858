"""A server that shows a log of its own making, honest or not: it holds the key, so it can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from mneme.proof.notes import VerifierKey, checkpoint_text, signature_line
from mneme.v1 import proof_service_pb2 as pb
from mneme_server.features.proof.merkle import Tile, Tree, appended, leaf_hash

ORIGIN = "mneme/acme/first"


class Key:
    """A key that signs notes."""

    def __init__(self, name: str = "mneme/acme") -> None:
        self._private = Ed25519PrivateKey.generate()
        public = self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.verifier = VerifierKey(name, public)
        self.introduction = ""

    def note(self, text: str) -> str:
        """Return a text as a signed note."""
        signature = self._private.sign(text.encode())
        return f"{text}\n{signature_line(self.verifier, signature)}"


class Shown:
    """What `mneme.v1.ProofService` shows of a log: leaves, keys, and the name of the log."""

    def __init__(self, *leaves: str) -> None:
        self.leaves: Sequence[str] = leaves
        self.keys = [Key()]
        self.origin = ORIGIN
        self.previous = ""

    def head(self) -> str:
        """Return the signed head."""
        return self.keys[-1].note(self._text(self._tree()))

    def rotate(self, *, introduced: bool = True) -> None:
        """Make a new key, which the old one signs, or not."""
        made, old = Key(), self.keys[-1]
        text = f"mneme new log key\n{len(self.keys) + 1}\n{made.verifier}\n"
        made.introduction = (old if introduced else made).note(text)
        self.keys.append(made)

    def script(self, served: Any) -> None:
        """Have a scripted server show this."""
        served.on("GetCheckpoint", lambda *_call: self._checkpoint())
        served.on("ListLogKeys", lambda *_call: self._listed())
        served.on("GetConsistencyProof", lambda request, _call: self._consistency(request))

    def _text(self, tree: Tree) -> str:
        return checkpoint_text(self.origin, tree.size, tree.root())

    def _tree(self) -> Tree:
        hashes = [leaf_hash(leaf.encode()) for leaf in self.leaves]
        tiles: dict[tuple[int, int], Tile] = appended(0, hashes, lambda *_: b"")
        return Tree(len(hashes), lambda level, number: tiles.get((level, number), b""))

    def _checkpoint(self) -> pb.GetCheckpointResponse:
        tree = self._tree()
        return pb.GetCheckpointResponse(
            note=self.head(),
            origin=self.origin,
            size=tree.size,
            root_hash=tree.root(),
            verifier_key=str(self.keys[-1].verifier),
            previous_note=self.previous,
        )

    def _consistency(self, request: Any) -> pb.GetConsistencyProofResponse:
        return pb.GetConsistencyProofResponse(hashes=self._tree().consistency(request.old_size))

    def _listed(self) -> pb.ListLogKeysResponse:
        return pb.ListLogKeysResponse(
            keys=[
                pb.LogKey(
                    number=number,
                    verifier_key=str(key.verifier),
                    introduction=key.introduction,
                )
                for number, key in enumerate(self.keys, 1)
            ]
        )
