"""Results as HDF5 files: a dataset per column, with time as the scale of its first dimension.

Arrays keep their shapes. Numbers are compressed without loss (gzip). Units are attributes (``units``). HDF5 has no absent
values: absent numbers are NaN, so that integers beyond 2**53 are rounded in columns that have absent values; absent texts
and binaries are empty, and a second dataset of Booleans, whose name the attribute ``present`` of the first one has, tells
them from those that are. A binary is an array of bytes. The dataset ``fmimaster.json`` holds the facts of the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from fmimaster.base.errors import FileError
from fmimaster.base.files import MOST_GROWTH, check_growth, decoding, open_file
from fmimaster.base.installation import optional
from fmimaster.results.columns import are_binaries, check_width, objects
from fmimaster.results.facts import Facts
from fmimaster.results.row_writer import BinaryWriter
from fmimaster.results.table import Table

_DOCUMENT = "fmimaster.json"
_UNITS, _NAME, _MASKED, _PRESENT = "units", "name", "type without absent values", "present"
"""Attributes of a dataset."""
_CHUNK = 1024
"""Rows that are stored together at most: they are read and compressed as one."""
_CHUNK_BYTES = 2**20
"""The same in bytes, for large arrays: HDF5 keeps so much of a dataset in memory, and refuses chunks of 4 GB."""
_COLUMN = 500
"""Bytes that a column takes without its values."""
_MOST_SCALED = 500
"""Columns that name time as their scale. HDF5 lists them in one attribute of time, which is written again for each of
them (4000 take 12 s) and holds at most 4096."""
_COMPRESSION = {"compression": "gzip", "compression_opts": 1, "shuffle": True}
"""Each program that reads HDF5 has gzip; higher levels take much longer and gain little."""


def _h5py() -> Any:
    return optional("h5py", "hdf5", "A .h5 file")


class Hdf5Writer(BinaryWriter):
    """Writes an HDF5 file, whose datasets grow with the rows."""

    def prepared(self, block: Table) -> Table:
        return block

    def begin(self, file: BinaryIO, block: Table) -> None:
        h5py = _h5py()
        self._to = h5py.File(file, "w", track_order=True)
        self._sets: dict[str, Any] = {}
        self._presence: dict[str, Any] = {}
        for name, values in block.items():
            dataset = self._dataset(_key(name), _type(h5py, values), values)
            unit = "s" if name == "time" else block.units.get(name)
            if unit:
                dataset.attrs[_UNITS] = unit
            if _key(name) != name:
                dataset.attrs[_NAME] = name
            if np.ma.isMaskedArray(values) and values.dtype == object:
                presence = f"{_key(name)}%{_PRESENT}"
                self._presence[name] = self._dataset(presence, np.dtype(bool), values)
                dataset.attrs[_PRESENT] = presence
            elif np.ma.isMaskedArray(values):
                dataset.attrs[_MASKED] = values.dtype.str
            self._sets[name] = dataset
        self._sets["time"].make_scale("time")
        for dataset in list(self._sets.values())[1 : 1 + _MOST_SCALED]:
            dataset.dims[0].attach_scale(self._sets["time"])

    def _dataset(self, key: str, kind: Any, values: NDArray[Any]) -> Any:
        """An empty dataset with the shape of a column."""
        return self._to.create_dataset(
            key,
            (0, *values.shape[1:]),
            kind,
            maxshape=(None, *(n or None for n in values.shape[1:])),
            chunks=_chunk(values),
            **({} if kind.kind == "O" else _COMPRESSION),
        )

    def append(self, block: Table) -> None:
        for name, values in block.items():
            self._extend(self._sets[name], _stored(values))
        for name, dataset in self._presence.items():
            self._extend(dataset, ~np.ma.getmaskarray(block[name]))

    def _extend(self, dataset: Any, rows: NDArray[Any]) -> None:
        before = len(dataset)
        dataset.resize(before + len(rows), axis=0)
        if _h5py().check_vlen_dtype(dataset.dtype) is None:
            dataset[before:] = rows
            return
        # dataset[before:] would put binaries of one length together as an array
        h5s = _h5py().h5s
        target = dataset.id.get_space()
        target.select_hyperslab((before, *(0 for _ in rows.shape[1:])), rows.shape)
        dataset.id.write(h5s.create_simple(rows.shape), target, rows.astype(dataset.dtype))

    def end(self, document: bytes) -> None:
        if document:
            self._to[_DOCUMENT] = np.frombuffer(document, np.uint8)
        self._to.close()


def _type(h5py: Any, values: NDArray[Any]) -> Any:
    """The type of a dataset for a column."""
    if are_binaries(values):
        return h5py.vlen_dtype(np.uint8)
    return h5py.string_dtype() if values.dtype == object else _stored(values).dtype


def _key(name: str) -> str:
    """The name of a dataset: a slash would make a group, and a dot means the group itself."""
    if name in ("", ".", _DOCUMENT):
        return f"%{name}%"
    return name.replace("%", "%25").replace("/", "%2F")


def _chunk(values: NDArray[Any]) -> tuple[int, ...]:
    """Rows that are stored together, and the shape of a row."""
    shape = tuple(n or 1 for n in values.shape[1:])  # an array may have no elements
    row = values.dtype.itemsize * math.prod(shape)
    return max(1, min(_CHUNK, _CHUNK_BYTES // row)), *shape


def _stored(values: NDArray[Any]) -> NDArray[Any]:
    """Values as they are stored: binaries as arrays of bytes, absent numbers as NaN, other absent values as empty ones."""
    if values.dtype == object:
        is_binary = are_binaries(values)
        stored = np.empty(values.size, object)
        cells = np.ma.filled(values, b"" if is_binary else "").flat
        stored[:] = [np.frombuffer(v, np.uint8) for v in cells] if is_binary else list(cells)
        return stored.reshape(values.shape)
    if not np.ma.isMaskedArray(values):
        return values
    numbers = np.array(np.ma.getdata(values), np.float64)
    numbers[np.ma.getmaskarray(values)] = np.nan
    return numbers


def read_hdf5(path: Path) -> tuple[Table, Facts]:
    """A table from an HDF5 file of :class:`Hdf5Writer`, or of another program that has a dataset ``time``; and its facts.

    Datasets with another number of rows are left out.

    Raises
    ------
    FileError
    """
    h5py = _h5py()
    columns: dict[str, NDArray[Any]] = {}
    units: dict[str, str] = {}
    document = b""
    with open_file(path):  # what is wrong with the file itself
        pass
    with decoding(path, "an HDF5 file with results"), h5py.File(path, "r") as file:
        sets = _datasets(h5py, path, file)
        if "time" not in sets:
            raise FileError(f"'{path}' has no dataset 'time'.")
        if sets["time"].ndim != 1:
            shape = sets["time"].shape
            raise FileError(f"'{path}': 'time' has the shape {shape}, expected one axis, the rows.")
        rows = len(sets["time"])
        presence = {_attribute(dataset, _PRESENT) for dataset in sets.values()}
        for key, dataset in sets.items():
            if key == _DOCUMENT and dataset.dtype == np.uint8:
                document = np.asarray(dataset[()]).tobytes()
            elif key not in presence and dataset.shape[:1] == (rows,):
                given = _attribute(dataset, _NAME)
                name = key if given is None else given
                present = _attribute(dataset, _PRESENT)
                columns[name] = _read(h5py, path, dataset, present and sets[present])
                if unit := _attribute(dataset, _UNITS):
                    units[name] = unit
    units.pop("time", None)
    time = columns.pop("time")
    return Table(time=time, columns=columns, units=units), Facts(path, document)


def _datasets(h5py: Any, path: Path, file: Any) -> dict[str, Any]:
    """The datasets of a file by their names, of plausible size and with their values in this file."""
    check_width(len(file), path)
    found = {}
    for key in file:
        link = file.get(key, getlink=True)
        if not isinstance(link, h5py.HardLink):
            raise FileError(f"'{path}': '{key}' is a link. Store the dataset itself in the file.")
        if isinstance(dataset := file[key], h5py.Dataset):
            if dataset.external or dataset.is_virtual:
                raise FileError(
                    f"'{path}': the values of '{key}' are in another file. Store them in this one."
                )
            if not _is_known(h5py, dataset.dtype):
                raise FileError(
                    f"'{path}', column '{key}': expected numbers, text or binaries, not {dataset.dtype}."
                )
            if dataset.shape is None:
                raise FileError(
                    f"'{path}', column '{key}' has no values, expected a row for each time."
                )
            found[key] = dataset
    whole = sum(_size(dataset) for dataset in found.values())
    chunks = [math.prod(d.chunks) * d.dtype.itemsize for d in found.values() if d.chunks]
    check_growth(max([whole, *chunks]), path)
    return found


def _is_known(h5py: Any, kind: Any) -> bool:
    """Whether values of a type are numbers, text or binaries."""
    if kind.kind == "O":
        return bool(h5py.check_string_dtype(kind)) or h5py.check_vlen_dtype(kind) == np.uint8
    return kind.kind in "biufS"


def _size(dataset: Any) -> int:
    """Bytes that the column of a dataset takes; the elements of its rows can become columns of their own."""
    columns = math.prod(dataset.shape[1:])
    return int(dataset.size * dataset.dtype.itemsize + (columns if columns > 1 else 0) * _COLUMN)


def _attribute(dataset: Any, name: str) -> str | None:
    """A text, which some programs write as bytes; None if there is none."""
    if name not in dataset.attrs:  # faster than get, by the KeyError
        return None
    text = dataset.attrs[name]
    if isinstance(text, bytes):
        return text.decode("utf-8", "replace")
    return text if isinstance(text, str) else None


def _read(h5py: Any, path: Path, dataset: Any, present: Any) -> NDArray[Any]:
    if dataset.dtype.kind == "O":
        column = _objects(h5py, path, dataset)
        if present is None:
            return column
        if present.shape != dataset.shape:
            raise ValueError(f"'{present.name}' has another shape than the column")
        return np.ma.MaskedArray(column, ~present[()].astype(bool))
    values = np.asarray(dataset[()])
    if _MASKED not in dataset.attrs:
        return values
    number = np.dtype(_attribute(dataset, _MASKED))
    if number.kind not in "biuf":  # a text could be of any length
        raise ValueError(f"'{number}' is no type of numbers")
    absent = np.isnan(values)
    return np.ma.MaskedArray(np.where(absent, 0, values).astype(number), absent)


def _objects(h5py: Any, path: Path, dataset: Any) -> NDArray[Any]:
    """Texts, or binaries as bytes. Some at a time: all of them can refer to one long value."""
    is_text = h5py.check_string_dtype(dataset.dtype)
    values: list[Any] = []
    taken = 0
    for part in _parts(dataset.shape):
        cells = dataset[part].flat
        found = [_letters(v) if is_text else np.asarray(v).tobytes() for v in cells]
        values += found
        taken += sum(map(len, found))
        check_growth(taken, path)
    return np.reshape(objects(values, "" if is_text else b""), dataset.shape)


def _parts(shape: Sequence[int]) -> Iterator[tuple[int | slice, ...]]:
    """Parts of an array in row-major order, each of few elements."""
    axis = next(k for k in range(len(shape)) if math.prod(shape[k + 1 :]) <= MOST_GROWTH)
    step = max(1, MOST_GROWTH // max(1, math.prod(shape[axis + 1 :])))
    for index in np.ndindex(*shape[:axis]):
        for first in range(0, shape[axis], step):
            yield *index, slice(first, first + step)


def _letters(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)
