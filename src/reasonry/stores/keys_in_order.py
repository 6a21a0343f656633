"""Keys of which there may be hundreds of thousands, without all of them in memory."""

from __future__ import annotations

from collections.abc import Iterator


class KeysInOrder:
    """Tells whether keys are among others, which come in order, one by one; they are asked for in the same order."""

    def __init__(self, keys: Iterator[int], *, backwards: bool = False) -> None:
        self._keys, self._backwards = keys, backwards
        self._next = next(keys, None)

    def __contains__(self, key: int) -> bool:
        if self._backwards:
            while self._next is not None and self._next > key:
                self._next = next(self._keys, None)
        else:
            while self._next is not None and self._next < key:
                self._next = next(self._keys, None)
        return self._next == key
