"""The notebooks run from their first cell to their last, and print what is stored in them."""

import nbformat
import pytest
from notebook_outputs import NOTEBOOKS, TRANSIENT, run, texts


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_prints_its_stored_outputs(path, tmp_path):
    stored = texts(nbformat.read(path, as_version=4))
    printed = texts(run(path, tmp_path))
    assert sum(map(len, stored)) >= 3, "no outputs are stored"
    hint = "python tests/notebook_outputs.py stores the outputs again"
    for number, (kept, now) in enumerate(zip(stored, printed, strict=True), 1):
        assert kept == now, f"code cell {number}; {hint}"
        for _, text in now:
            assert not TRANSIENT.search(text or ""), f"code cell {number} depends on the run"
