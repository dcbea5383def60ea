"""Where checkpoints lie: `<storage>/checkpoints/<pipeline>/<query>/<generation>`, the manifest beside each."""

from __future__ import annotations

from penstock.storage.storage import Storage, join

_MANIFEST = ".json"


def folder_of_pipeline(storage_root: str, pipeline: str) -> str:
    return join(storage_root, "checkpoints", pipeline)


def folder_of_query(storage_root: str, pipeline: str, query: str) -> str:
    return join(folder_of_pipeline(storage_root, pipeline), query)


def generation_folder(query_folder: str, generation: int) -> str:
    return join(query_folder, f"{generation:04d}")


def manifest_file(query_folder: str, generation: int) -> str:
    return generation_folder(query_folder, generation) + _MANIFEST


def queries_in(storage: Storage, pipeline_folder: str) -> tuple[str, ...]:
    """The queries that have a checkpoint."""
    return tuple(
        entry.name
        for entry in storage.entries(pipeline_folder)
        if entry.is_folder and generations_in(storage, entry.path)
    )


def generations_in(storage: Storage, query_folder: str) -> tuple[int, ...]:
    """The generations that have a manifest, oldest first. A folder without one was never started."""
    return tuple(
        sorted(
            int(entry.name.removesuffix(_MANIFEST))
            for entry in storage.entries(query_folder)
            if entry.name.endswith(_MANIFEST) and entry.name.removesuffix(_MANIFEST).isdigit()
        )
    )


def unclaimed_in(storage: Storage, query_folder: str) -> tuple[int, ...]:
    """The generations that were started and have no manifest any more, oldest first."""
    entries = storage.entries(query_folder)
    known = {entry.name for entry in entries}
    return tuple(
        sorted(
            int(entry.name)
            for entry in entries
            if entry.is_folder
            and entry.name.isdigit()
            and f"{entry.name}{_MANIFEST}" not in known
            and storage.entries(join(entry.path, "offsets"))
        )
    )


def last_number(storage: Storage, query_folder: str) -> int:
    """The highest number that a generation has, or a folder that was never started; 0 if there is none."""
    names = (entry.name.removesuffix(_MANIFEST) for entry in storage.entries(query_folder))
    return max((int(name) for name in names if name.isdigit()), default=0)
