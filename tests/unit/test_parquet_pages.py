"""The size of a Parquet file in memory, by its pages, is what an honest footer says."""

from __future__ import annotations

import io

import numpy as np
import pytest

from fmimaster.results.parquet import unpacked_size

arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

ROWS = 5000


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("use_dictionary", [True, False])
def test_pages_of_a_written_file(compression: str, version: str, use_dictionary: bool) -> None:
    columns = {
        "x": np.linspace(0, 1, ROWS),
        "text": ["abc" * (k % 7) for k in range(ROWS)],
        "binary": [bytes([k % 5]) * 9 for k in range(ROWS)],
    }
    file = io.BytesIO()
    parquet.write_table(
        arrow.table(columns),
        file,
        compression=compression,
        data_page_version=version,
        use_dictionary=use_dictionary,
        row_group_size=2000,
    )
    metadata = parquet.ParquetFile(file).metadata
    chunks = [metadata.row_group(g).column(c) for g in range(3) for c in range(3)]
    headers = 300 * len(chunks)  # bytes: the footer counts them, too
    declared = sum(chunk.total_uncompressed_size for chunk in chunks)
    found = sum(unpacked_size(file, chunk) for chunk in chunks)
    assert declared - headers <= found <= declared
    assert found > 2 * headers


def test_a_page_that_is_none() -> None:
    class Chunk:
        """What a damaged footer can say."""

        dictionary_page_offset, data_page_offset = None, 4
        total_compressed_size, num_values = 10**9, 10**9

    with pytest.raises((ValueError, LookupError)):
        unpacked_size(io.BytesIO(b"PAR1" + b"\xff" * 100), Chunk())
