#!/usr/bin/env python3
"""One table in many files, as other programs write them: pyarrow's Parquet and Arrow, and the csv module's CSV.

    python3 vectors/model/tables.py            write the files; needs pyarrow
    python3 vectors/model/tables.py --check    read what is committed and compare it with the table; exit 1 if it differs

Another pyarrow writes other bytes for the same table, so files are compared by what they say. Without pyarrow, only the
CSV files are. What the files are for is said in vectors/README.md.
"""

import argparse
import csv
import datetime
import decimal
import io
import json
import pathlib
import sys

try:
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet
except ImportError:
    pa = None

FOLDER = pathlib.Path(__file__).parent.parent / "tables"
NAMES = ["note", "since", "kind", "age", "pay", "bonus"]
EPOCH = datetime.date(1970, 1, 1)

# What is read: cents; years; which of two categories; days since 1970; a small number. None is a missing value.
EDGES = [
    [0, 0, 0, 0, 0],
    [-100000, -500, 1, -25567, 9],
    [100000, 500, 0, 47482, None],
    [1, None, None, None, 1],
    [-1, -1, 1, -1, None],
    [99999, None, 0, 19782, 5],
]
ROWS = EDGES + [
    [
        (7919 * k) % 200001 - 100000,
        None if k % 5 == 0 else (37 * k) % 1001 - 500,
        None if k % 7 == 0 else k % 2,
        None if k % 11 == 0 else 321 * k - 9000,
        None if k % 3 == 0 else k % 10,
    ]
    for k in range(1, 36)
]
KINDS = ["x", "y, z"]
# What is not read, and is in the way of whoever looks for the end of a cell.
NOTES = ["", "plain", 'a "quoted" word', "a,b;c\td", "two\nlines", "three\r\n\r\nlines", '"', '""",\n', "Köln – 東京", "'", "#"]

# How a CSV file is written; the first two fields are what a job says of it.
CSV = {
    "excel.csv": {"delimiter": ",", "decimal": ".", "dialect": "excel"},
    "unix.csv": {"delimiter": ",", "decimal": ".", "dialect": "unix"},
    "semicolons.csv": {"delimiter": ";", "decimal": ",", "dialect": "excel", "bom": True},
    "tabs.csv": {"delimiter": "\t", "decimal": ".", "dialect": "excel-tab", "lineterminator": "\n"},
    "bars.csv": {"delimiter": "|", "decimal": ",", "dialect": "excel", "quoting": csv.QUOTE_ALL, "blank": True},
}


def cells(row, index):
    """A row with its values as Python has them, in the order of NAMES."""
    pay, age, kind, since, bonus = row
    return [
        NOTES[index % len(NOTES)],
        None if since is None else EPOCH + datetime.timedelta(days=since),
        None if kind is None else KINDS[kind],
        age,
        decimal.Decimal(pay).scaleb(-2),
        bonus,
    ]


TABLE = [cells(row, index) for index, row in enumerate(ROWS)]


# ---------------------------------------------------------------------------------------------- CSV


def texts(row, mark):
    def text(cell):
        if cell is None:
            return ""
        return str(cell).replace(".", mark) if isinstance(cell, decimal.Decimal) else str(cell)

    return [text(cell) for cell in row]


def settings(how):
    return {name: how[name] for name in ("delimiter", "dialect", "quoting", "lineterminator") if name in how}


def write_csv(how):
    out = io.StringIO(newline="")
    writer = csv.writer(out, **settings(how))
    writer.writerow(NAMES)
    for index, row in enumerate(TABLE):
        writer.writerow(texts(row, how["decimal"]))
        if how.get("blank") and index % 10 == 0:
            out.write("\r\n")
    return out.getvalue().encode("utf-8-sig" if how.get("bom") else "utf-8")


def read_csv(bytes_, how):
    lines = io.StringIO(bytes_.decode("utf-8-sig"), newline="")
    rows = [row for row in csv.reader(lines, strict=True, **settings(how)) if row]
    assert rows[0] == NAMES, rows[0]
    return rows[1:] == [texts(row, how["decimal"]) for row in TABLE]


# ---------------------------------------------------------------------------------------------- Arrow and Parquet


def arrow_table(since, kind, age, pay, bonus, note):
    """The table with columns of these types."""
    types = [note, since, kind, age, pay, bonus]
    python = [pa.string(), pa.date32(), pa.string(), pa.int64(), pa.decimal128(9, 2), pa.int64()]
    columns = []
    for index, type_ in enumerate(types):
        column = pa.array([row[index] for row in TABLE], python[index])
        columns.append(column.dictionary_encode().cast(type_) if pa.types.is_dictionary(type_) else column.cast(type_))
    # Nothing reads it, and it is no column of cells.
    columns.append(pa.array([[index, None] for index in range(len(TABLE))], pa.list_(pa.int16())))
    return pa.table(columns, names=NAMES + ["nested"])


def tables():
    plain = arrow_table(pa.date32(), pa.string(), pa.int32(), pa.decimal128(9, 2), pa.uint8(), pa.string())
    coded = arrow_table(
        pa.timestamp("ms"), pa.dictionary(pa.int8(), pa.string()), pa.int64(), pa.decimal128(38, 2), pa.int8(), pa.large_string()
    )
    wide = arrow_table(
        pa.timestamp("us"), pa.large_string(), pa.int16(), pa.decimal256(40, 2), pa.uint64(), pa.string()
    )
    small = arrow_table(pa.timestamp("s"), pa.string_view(), pa.int16(), pa.decimal64(18, 2), pa.uint32(), pa.string_view())
    return plain, coded, wide, small


def columnar():
    """Each file's bytes."""
    plain, coded, wide, small = tables()

    def parquet(table, **how):
        out = io.BytesIO()
        pa.parquet.write_table(table, out, write_statistics=False, store_schema=how.pop("store_schema", True), **how)
        return out.getvalue()

    def arrow(table, rows, compression=None):
        out = io.BytesIO()
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_file(out, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=rows)
        return out.getvalue()

    def feather(table, **how):
        out = io.BytesIO()
        pa.feather.write_feather(table, out, **how)
        return out.getvalue()

    delta = {"age": "DELTA_BINARY_PACKED", "kind": "DELTA_BYTE_ARRAY", "note": "DELTA_LENGTH_BYTE_ARRAY", "pay": "BYTE_STREAM_SPLIT"}
    return {
        "plain.parquet": parquet(plain, compression="none", use_dictionary=False, version="1.0"),
        "snappy.parquet": parquet(coded, compression="snappy", row_group_size=20),
        "zstd.parquet": parquet(
            plain, compression="zstd", use_dictionary=False, column_encoding=delta, data_page_version="2.0",
            row_group_size=7, store_schema=False,
        ),
        "gzip.parquet": parquet(wide, compression="gzip", store_decimal_as_integer=True, write_page_index=True),
        "plain.arrow": arrow(plain, 41),
        "lz4.arrow": arrow(coded, 7, "lz4"),
        "zstd.arrow": arrow(small, 16, "zstd"),
        "wide.feather": feather(wide, compression="uncompressed"),
    }


def read_columnar(path):
    if path.suffix == ".parquet":
        table = pa.parquet.read_table(path)
    else:
        table = pa.ipc.open_file(path).read_all()
    rows = [[row[name] for name in NAMES] for row in table.to_pylist()]

    def same(a, b):
        return (a.date() if isinstance(a, datetime.datetime) else a) == b

    return len(rows) == len(TABLE) and all(same(a, b) for row, want in zip(rows, TABLE) for a, b in zip(row, want))


# ---------------------------------------------------------------------------------------------- main


def expected():
    """What the files hold, and what a job says of them."""
    lines = ",\n".join("    " + json.dumps(row) for row in ROWS)
    files = [{"file": name, **{key: how[key] for key in ("delimiter", "decimal")}} for name, how in CSV.items()]
    files += [{"file": name} for name in COLUMNAR]
    files = ",\n".join("    " + json.dumps(file) for file in files)
    return f'{{\n  "files": [\n{files}\n  ],\n  "rows": [\n{lines}\n  ]\n}}\n'


COLUMNAR = [
    "plain.parquet", "snappy.parquet", "zstd.parquet", "gzip.parquet",
    "plain.arrow", "lz4.arrow", "zstd.arrow", "wide.feather",
]


def main():
    parser = argparse.ArgumentParser(description="Writes one table in many files.")
    parser.add_argument("--check", action="store_true", help="read the files and compare them instead of writing them")
    check = parser.parse_args().check
    if not check:
        if pa is None:
            sys.exit("writing the files needs pyarrow: python3 -m pip install pyarrow")
        FOLDER.mkdir(exist_ok=True)
        for name, how in CSV.items():
            (FOLDER / name).write_bytes(write_csv(how))
        for name, bytes_ in columnar().items():
            (FOLDER / name).write_bytes(bytes_)
        (FOLDER / "tables.json").write_text(expected())
    different = [name for name, how in CSV.items() if not read_csv((FOLDER / name).read_bytes(), how)]
    if (FOLDER / "tables.json").read_text() != expected():
        different.append("tables.json")
    if pa is None:
        print("vectors/tables: skipped Parquet and Arrow, pyarrow is not installed")
    else:
        different += [name for name in COLUMNAR if not read_columnar(FOLDER / name)]
    if different:
        sys.exit(f"vectors/tables: these say something else than the model: {', '.join(different)}")


if __name__ == "__main__":
    main()
