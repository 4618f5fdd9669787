"""Tables in Markdown, and their place in docs/rtl-resources.md."""

from mapping import ROOT

PAGE = ROOT / "docs/rtl-resources.md"


def number(value):
    """With commas, and parts of blocks as they are."""
    return f"{value:,.1f}".removesuffix(".0") if isinstance(value, float) else f"{value:,}"


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def put(name, text):
    """Writes the tables of a family of cores between the marks of the page."""
    begin, end = f"<!-- {name}: made by rtl/synth/synth.py -->\n", f"<!-- {name}: end -->\n"
    page = PAGE.read_text()
    PAGE.write_text(page[:page.index(begin) + len(begin)] + "\n" + text + "\n" + page[page.index(end):])
