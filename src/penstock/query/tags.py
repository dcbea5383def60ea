"""Words that pipelines, steps and queries are chosen by: `penstock run tag:hourly`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.spec import Name

Tags = tuple[Annotated[Name, Field(pattern=r"^\w[\w.-]*$")], ...]
TAGS = "Words to choose it by, as in `penstock run tag:hourly`: letters, digits, `_`, `-` and dots."
