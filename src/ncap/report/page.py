"""Self-contained HTML pages: a frame, tables, and figures as pictures inside the page.

Nothing on a page is run: text is escaped, a figure is an image, in which browsers run no script, and the page's own
policy forbids scripts and every request.
"""

import base64
import html
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from ncap.errors import UserError
from ncap.files import write_whole

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.6rem; }} h2 {{ font-size: 1.2rem; margin-top: 2.2rem; }}
table {{ border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }}
td, th {{ padding: .3rem .9rem; text-align: right; }}
th {{ border-bottom: 2px solid #888; }} td {{ border-bottom: 1px solid #ddd; }}
td:first-child, th:first-child {{ text-align: left; white-space: nowrap; }} img {{ max-width: 100%; height: auto; }}
dt {{ font-weight: 600; margin-top: .5rem; }} dd {{ margin: 0 0 0 1.2rem; }}
.facts td {{ text-align: left; vertical-align: top; overflow-wrap: anywhere; }} .facts th {{ border: 0; padding: 0; }}
.big {{ font-size: 2.4rem; font-weight: 600; }}
</style></head><body>
{body}
</body></html>
"""


def write_page(path: Path, title: str, body: Iterable[str]) -> None:
    """Write a page whose body is these pieces of HTML."""
    make_folder_of(path)
    write_whole(path, _PAGE.format(title=html.escape(title), body="\n".join(body)).encode())


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column is text, the others are numbers."""
    lines = ["<tr>" + "".join(f"<th>{html.escape(name)}</th>" for name in head) + "</tr>"]
    lines += ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return "<table>" + "".join(lines) + "</table>"


def picture_of(fig: Figure, shows: str) -> str:
    """The figure as an image in HTML; it is closed. shows: a word about it for those who do not see it."""
    text = io.StringIO()
    fig.savefig(text, format="svg", metadata={"Date": None})
    plt.close(fig)
    return svg_image(text.getvalue(), shows)


def svg_image(text: str, shows: str) -> str:
    """An SVG file, by whomever, as an image in HTML."""
    data = base64.b64encode(text.encode()).decode()
    return f'<img alt="{html.escape(shows)}" src="data:image/svg+xml;base64,{data}">'


def make_folder_of(path: Path) -> None:
    """Make the folder of a file that is about to be written, if there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot create {path.parent}: {error.strerror}") from None
