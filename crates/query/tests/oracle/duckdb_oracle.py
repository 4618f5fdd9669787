"""Compares results of queries with those of DuckDB.

Reads one JSON document: a list of cases, each with `tables` (name, columns with SQL types, rows as texts or null) and `queries` (name, sql,
ordered, rows as texts or null). Prints each difference and exits with 1 if there is one. Without DuckDB it exits with 77.

Numbers are equal if they are equal as fractions. Where DuckDB computes with binary floating point (quotients, averages, deviations), they
may differ by half a unit of the sixth place and one part in 10^12.
"""

import csv
import json
import sys
import tempfile
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

try:
    import duckdb
except ImportError:
    sys.exit(77)


def plain(value):
    """A value of DuckDB as a text, a fraction, a float, a bool or None."""
    if value is None or isinstance(value, (bool, str, float)):
        return value
    if isinstance(value, datetime):
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (int, Decimal)):
        return Fraction(value)
    raise TypeError(type(value))


def equal(ours, theirs):
    if ours is None or theirs is None:
        return ours is theirs
    if isinstance(theirs, bool):
        return ours == ("true" if theirs else "false")
    if isinstance(theirs, str):
        return ours == theirs
    if isinstance(theirs, float):
        return abs(float(ours) - theirs) <= 5.0001e-7 + 1e-12 * abs(theirs)
    return Fraction(ours) == theirs


def matched(ours, theirs):
    """Pairs each row with an equal one; quadratic only within rows that compare equal so far."""
    left = list(theirs)
    for row in ours:
        for at, other in enumerate(left):
            if len(row) == len(other) and all(map(equal, row, other)):
                del left[at]
                break
        else:
            return row
    return left[0] if left else None


def load(base, table):
    """Rows by way of a file: statement by statement would take minutes."""
    with tempfile.NamedTemporaryFile("w", newline="", suffix=".csv", encoding="utf-8") as file:
        rows = csv.writer(file, quoting=csv.QUOTE_ALL)
        rows.writerows(["\\N" if v is None else v for v in row] for row in table["rows"])
        file.flush()
        options = "header false, nullstr '\\N', allow_quoted_nulls true, delim ',', quote '\"', escape '\"'"
        base.execute(f'COPY {table["name"]} FROM \'{file.name}\' ({options})')


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cases = json.load(file)
    differences = compared = 0
    for number, case in enumerate(cases):
        base = duckdb.connect()
        base.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        for table in case["tables"]:
            columns = ", ".join(f'{name} {kind}' for name, kind in table["columns"])
            base.execute(f'CREATE TABLE {table["name"]} ({columns})')
            if table["rows"]:
                load(base, table)
        for query in case["queries"]:
            compared += 1
            theirs = [[plain(v) for v in row] for row in base.execute(query["sql"]).fetchall()]
            ours = query["rows"]
            if query["ordered"]:
                wrong = len(ours) != len(theirs) or not all(
                    all(map(equal, a, b)) for a, b in zip(ours, theirs)
                )
            else:
                wrong = len(ours) != len(theirs) or matched(ours, theirs) is not None
            if wrong:
                differences += 1
                print(f"case {number}, {query['name']}: {query['sql']}")
                print(f"  ours   {ours[:8]}")
                print(f"  theirs {[[str(v) for v in row] for row in theirs[:8]]}")
    print(f"{compared} results compared with DuckDB {duckdb.__version__}, {differences} differ")
    sys.exit(1 if differences else 0)


main()
