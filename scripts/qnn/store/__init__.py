"""Digests and the content-addressed store of stage outputs."""

from qnn.store.digest import KnownDigests, StageKey, digest_of, file_digest
from qnn.store.store import Entry, Made, Store, StoredFile

__all__ = ["Entry", "KnownDigests", "Made", "StageKey", "Store", "StoredFile", "digest_of", "file_digest"]
