"""Names of tables in PostgreSQL, as users write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

if TYPE_CHECKING:
    from psycopg import sql


@dataclass(frozen=True)
class TableName:
    """A table as a user writes it: `table` or `schema.table`, each taken as it stands; quotes keep a dot in a name."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> TableName:
        """Raises ValueError."""
        parts: list[str] = [""]
        quoted = False
        for piece in _pieces(text):
            if piece == '"':
                quoted = not quoted
            elif piece == "." and not quoted:
                parts.append("")
            else:
                parts[-1] += '"' if piece == '""' else piece
        if quoted or len(parts) > 2 or not all(parts) or any("\0" in part for part in parts):
            raise ValueError("should be `table` or `schema.table`")
        return cls(tuple(parts))

    @property
    def identifier(self) -> sql.Identifier:
        from psycopg import sql

        return sql.Identifier(*self.parts)

    @property
    def quoted(self) -> str:
        """As SQL, for those who take a text."""
        return ".".join('"' + part.replace('"', '""') + '"' for part in self.parts)


def _pieces(text: str) -> list[str]:
    """Characters, where a doubled quote inside a name is one."""
    found: list[str] = []
    rest = text
    while rest:
        inside = found.count('"') % 2 == 1
        size = 2 if inside and rest.startswith('""') else 1
        found.append(rest[:size])
        rest = rest[size:]
    return found


def _checked(text: str) -> str:
    try:
        TableName.parse(text)
    except ValueError as error:
        raise PydanticCustomError("table", "{why}", {"why": str(error)}) from None
    return text


TableText = Annotated[str, AfterValidator(_checked)]
"""The name of a table, as a user writes it."""
