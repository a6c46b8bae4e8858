"""Names in code, paths and codes: what is either there or not, whatever a model makes of it."""

from __future__ import annotations

import re

from mneme_server.engine.index.words.languages import in_pairs
from mneme_server.features.recall.dates import named_dates

_FEW_WORDS = 2
_SUFFIXES = (
    "py|js|ts|tsx|go|rs|java|c|cc|cpp|h|rb|php|sh|sql|md|json|ya?ml|toml|lock|cfg|conf|ini|txt|csv"
    "|log|html|css|xml"
)
# What may begin anywhere is only looked for where nothing that it could have begun with stands
# before: else a run of a thousand characters that is none would be read a thousand times.
_IDENTIFIER = re.compile(
    r"(?<![\w.-])(?<![\w.-][/\\])"
    r"(?:[A-Za-z]:\\|~?/|\./)?[\w.-]+(?:[/\\][\w.-]+)+\.\w+"  # src/app.py
    r"|(?<![\w.])(?:~?/|\./)[\w.-]+(?:/[\w.-]+)*"  # /etc/hosts
    rf"|(?<![\w-])-*\w[\w-]*\.(?:{_SUFFIXES})\b"  # config.yaml
    r"|\b[A-Za-z_]\w+(?:(?:::|\.)[a-z_]\w+)+\b"  # os.path, std::mem
    r"|\b[A-Za-z]\w*(?:Error|Exception|Warning)\b"  # KeyError
    r"|\b(?i:code|errno|status|http|error|exit|ticket|order|issue)(?i: code| status)?"
    r"[ :=#]{1,3}\d+\b"  # exit code 137
    r"|\b[A-Z]{1,10}-\d+\b"  # ORA-12345
    r"|\b\w+(?:_\w+)+\b"  # get_user
    r"|\b(?=\w*\d)(?=\w*[A-Za-z])(?!\d+(?:st|nd|rd|th|[ap]m|[a-z]{1,2})\b)\w{4,}\b"  # 4WQ150
    r"|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b"  # getUser
    r"|\b[A-Z]{6,}\b"  # ECONNREFUSED
    r"|\b\d{5,}\b"
)

# What each of them has somewhere; most questions have none of it, and are not searched.
_UNUSUAL = re.compile(r"[\d_/\\.:]|[a-z][A-Z]|[A-Z]{6}|Error|Exception|Warning")


def identifiers_in(query: str) -> list[str]:
    """Return the names in code, paths and codes that a query holds, each once.

    A few words with a digit among them are one, unless they name a date: "v1.2.3", "4412". One ends
    where Chinese, Japanese or Korean begins, which is written around it without spaces.
    """
    apart = in_pairs(query)
    found = _IDENTIFIER.findall(apart) if _UNUSUAL.search(apart) else []
    few = not found and len(apart.split()) <= _FEW_WORDS and any(map(str.isdigit, apart))
    if few and not named_dates(apart):
        return [apart.strip()]
    return list(dict.fromkeys(found))
