"""Runs the notebooks and stores what their cells print.

`python tests/notebook_outputs.py` in `crates/python` stores the outputs of all notebooks, or of those that it is given.
The tests use the same functions to check that the stored outputs are those of the package as it is.

Outputs contain no time, no path of this machine and no memory address: the same seed prints the same text. A picture
depends on the version of matplotlib and the fonts of the machine, so the tests compare only that a picture exists.
"""

import re
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
#: What must not be in an output: an address of an object, a temporary folder, a date with a time.
TRANSIENT = re.compile(r"\b0x[0-9a-f]{6,}|/tmp/|\d{4}-\d\d-\d\d[T ]\d\d:\d\d")


def run(path, folder):
    """Returns the notebook after its cells have run in an empty folder, with nothing that depends on the machine."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=300, resources=resources, record_timing=False).execute()
    notebook.metadata.pop("language_info", None)
    return notebook


def texts(notebook):
    """Returns the outputs of each cell as pairs of a type and a text; a picture has no text."""
    return [
        [pair for output in cell.get("outputs", []) for pair in _of_output(output)]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def _of_output(output):
    if output.output_type == "stream":
        return [(output.name, output.text)]
    return [
        (kind, None if kind.startswith("image/") else text)
        for kind, text in sorted(output.get("data", {}).items())
    ]


def main(paths):
    for path in paths or NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            notebook = run(path, folder)
        nbformat.write(notebook, path)
        print(path)


if __name__ == "__main__":
    main([Path(path) for path in sys.argv[1:]])
