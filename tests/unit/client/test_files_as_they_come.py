"""What is no regular file is written as it comes."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import pytest
from mneme._files import replacing


@pytest.mark.skipif(sys.platform == "win32", reason="it opens a terminal")
def test_a_terminal_shows_each_line_as_it_is_written() -> None:
    mine, terminal = os.openpty()
    try:
        with replacing(Path(os.ttyname(terminal))) as file:
            file.write("a line\n")
            assert select.select([mine], [], [], 5.0)[0]
            assert os.read(mine, 100) == b"a line\r\n"
    finally:
        os.close(mine)
        os.close(terminal)
