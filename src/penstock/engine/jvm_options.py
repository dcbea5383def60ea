"""Options of the JVM that make a command answer sooner. What the user sets of the same kind wins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ENVIRONMENT = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Where a user may set options too, besides Spark's own settings."""
_SHARING = ("-Xshare", "-XX:SharedArchiveFile", "-XX:ArchiveClassesAtExit", "-XX:+UseSharedSpaces",
            "-XX:-UseSharedSpaces", "-XX:+AutoCreateSharedArchive", "-XX:SharedClassListFile")  # fmt: skip
_COMPILING = ("-XX:TieredStopAtLevel", "-XX:-TieredCompilation", "-XX:+TieredCompilation", "-Xint", "-Xcomp")
_COMPILERS = ("-XX:+UseJVMCICompiler", "-XX:CompilationMode")
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def theirs(settings: Mapping[str, str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """All options that the user sets, wherever they stand."""
    named = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
    texts = (*(settings.get(name, "") for name in named), *(environ.get(name, "") for name in ENVIRONMENT))
    return tuple(word for text in texts for word in text.replace('"', " ").replace("'", " ").split())


def for_archive(words: tuple[str, ...], archive: Path | None) -> str:
    """Lets the JVM use an archive; should it refuse it, it goes on without and says nothing."""
    if archive is None or _any(words, _SHARING):
        return ""
    return f'-XX:SharedArchiveFile="{archive}" -Xshare:auto {_SILENT}'


def for_recording(draft: Path) -> str:
    """Lets the JVM write an archive as it ends."""
    return f'-XX:ArchiveClassesAtExit="{draft}" {_SILENT}'


def for_seconds(words: tuple[str, ...]) -> str:
    """For a JVM that lives for seconds: the quick compiler alone, and a collector without threads of its own."""
    quick = "" if _any(words, (*_COMPILING, *_COMPILERS)) else "-XX:TieredStopAtLevel=1"
    collected = any(word.startswith("-XX:+Use") and word.endswith("GC") for word in words)
    return f"{quick} {'' if collected else '-XX:+UseSerialGC'}".strip()


def _any(words: tuple[str, ...], starts: tuple[str, ...]) -> bool:
    return any(word.startswith(starts) for word in words)
