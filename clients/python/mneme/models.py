"""What learning sessions exported when they ended, as files: archives that `numpy.load` reads."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mneme._files import replacing_bytes
from mneme._generated.services import SyncServices
from mneme.errors import DataLossError

if TYPE_CHECKING:
    from mneme.types import ExportedModel


@dataclass(frozen=True)
class Downloaded:
    """A model that was downloaded: where it is now, and what the server said of it."""

    path: Path
    model: ExportedModel


def download(client: SyncServices, session_id: str, to: Path) -> Downloaded:
    """Write the model that a learning session exported when it ended to a file.

    The file is there whole, and has the SHA-256 that the server names, or it is not there.

    Args:
        client: a client whose key may learn.
        session_id: the session.
        to: the file; a folder: it gets the name that the server gives it.

    Raises:
        NotFoundError: there is no such session, or it exported nothing.
        UnavailableError: the session exported another model meanwhile; begin anew.
        DataLossError: what arrived is not what was exported.
        OSError: it cannot be written.
    """
    with client.download_model(session_id) as parts:
        model = next(parts).model
        path = to / Path(model.name).name if to.is_dir() else to
        digest = hashlib.sha256()
        with replacing_bytes(path) as file:
            for part in parts:
                digest.update(part.data)
                file.write(part.data)
            if digest.hexdigest() != model.sha256:
                raise DataLossError(f"what arrived of {model.name} is not what was exported")
    return Downloaded(path, model)
