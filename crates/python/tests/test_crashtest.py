"""Crash tests from Python: a program on the drive itself, and one with files in a guest."""

import os
import shutil
import sqlite3
import subprocess
import traceback
from pathlib import Path

import drivelab as dl
import pytest

PYTHON = "/usr/bin/python3"  # Debian's has the module nbd

ORDERS = """\
import nbd, os, sys
disk = nbd.NBD()
disk.connect_uri(os.environ["DRIVELAB_URI"])
acks = open(os.environ["DRIVELAB_ACKS"], "w", buffering=1)
for order in range(1, 13):
    disk.pwrite(bytes([order]) * 4096, 4096 * order)
    if "--careless" not in sys.argv:
        disk.flush()
    print(order, file=acks)
disk.flush()
"""


def needs(*programs):
    if "DRIVELAB" not in os.environ and shutil.which("drivelab") is None:
        pytest.skip("DRIVELAB names no program")
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    for program in programs:
        if shutil.which(program, path=path) is None:
            pytest.skip(f"{program} is missing")


def recorded(folder, *options):
    needs(PYTHON)
    if subprocess.run([PYTHON, "-c", "import nbd"], capture_output=True).returncode:
        pytest.skip("python3-libnbd is missing")
    program = folder / "orders.py"
    program.write_text(ORDERS)
    return dl.crashtest.record("950pro-256", [PYTHON, str(program), *options], fs="none", size="1M")


def find_orders(image):
    for order in image.acks:
        if image.read(4096 * int(order), 1) != bytes([int(order)]):
            return f"lost {order}"
    return None


def test_a_function_finds_the_missing_flush_and_again_by_its_name(tmp_path):
    run = recorded(tmp_path, "--careless")
    result = run.check(find_orders, budget=120, images=300)
    assert not result.held and not result
    assert [failure["class"] for failure in result.failures] == ["lost"]
    failure = result.failures[0]
    assert failure["needs"] == "volatile cache" and "950pro-256" in failure["possible_on"]
    (again,) = [line.partition("again: ")[2] for line in repr(result).splitlines() if "again: " in line]
    assert "FAILED     lost " in eval(again, {"drivelab": dl, "find_orders": find_orders})
    assert "FAILED     lost " in run.replay(failure["image"], find_orders)
    # On a drive with power-loss protection, the same recording holds.
    held = run.check(find_orders, budget=120, drive="pm9a3-960")
    assert held.held and repr(held).startswith("held: no image of ")


def test_the_correct_program_holds_by_a_function_and_by_a_command(tmp_path):
    run = recorded(tmp_path)
    assert run.check(find_orders, budget=120).held
    check = tmp_path / "check.sh"
    check.write_text('test "$(head -c 1 "$DRIVELAB_ACKS")" != 9')
    assert run.check(["sh", str(check)], budget=120, images=20).held
    saved = run.save(tmp_path / "run.dlog")
    with pytest.raises(dl.InputError, match="the file exists"):
        run.save(tmp_path / "run.dlog")
    assert dl.crashtest.load(saved.log).check(find_orders, budget=120)["acknowledgements"] == 12
    run.keep("end", tmp_path / "end.img")
    assert (tmp_path / "end.img").stat().st_size == 1 << 20


def test_what_a_function_says_is_the_class(tmp_path):
    run = recorded(tmp_path)

    def classes(check):
        result = run.check(lambda image: check() if "12" not in image.acks else None, budget=120, images=20)
        return {(failure["class"], failure["line"]) for failure in result.failures}

    def violation():
        raise dl.crashtest.Violation("corrupt: page 3\nof 4")

    def assertion():
        assert 1 + 1 == 3, "arithmetic"

    def error():
        return {}["key"]

    assert classes(violation) == {("corrupt", "corrupt: page 3 of 4")}
    ((kind, line),) = classes(assertion)
    assert kind == "rule" and line.startswith("rule: arithmetic")  # pytest adds the expression
    assert classes(error) == {("unopenable", "unopenable: KeyError: 'key'")}
    assert classes(lambda: False) == {("rule", "rule: the check returns False")}
    assert classes(lambda: True) == set() and classes(lambda: "skip") == set()


def test_a_function_that_rejects_the_orderly_end_is_named_with_its_line(tmp_path):
    run = recorded(tmp_path)

    def broken(image):
        raise ValueError("boom")

    with pytest.raises(dl.InputError, match="the check function broken fails on the image of the orderly end") as caught:
        run.check(broken, budget=120)
    text = str(caught.value)
    assert "unopenable: ValueError: boom" in text and "import socket" not in text and "--from LOG" not in text
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError) and cause.__traceback__.tb_next is not None
    frames = [frame.name for frame in traceback.extract_tb(cause.__traceback__)]
    assert frames[-1] == "broken"
    with pytest.raises(dl.InputError, match="^the check function <lambda> has judged no image: "):
        run.check(lambda image: "skip", budget=120, images=20)


def test_a_text_that_begins_with_ok_rejects():
    def answer(check):
        return dl.crashtest._Judge(check)._answer(None)

    def violation(text):
        raise dl.crashtest.Violation(text)

    assert answer(lambda _: violation("ok before the cut, but 1 row is lost")) == "rule: ok before the cut, but 1 row is lost"
    assert answer(lambda _: violation("\nok: 1 row")) == "rule: ok: 1 row"
    assert answer(lambda _: violation("")) == "rule"
    assert answer(lambda _: "ok") == "rule: ok"
    for text in ["lost 57", "corrupt: page 3", "unopenable", "fsck: 1", "skip", "rule: sum"]:
        assert answer(lambda _, text=text: text) == text


def test_bad_input_is_the_text_of_the_program(tmp_path):
    needs()
    with pytest.raises(dl.InputError, match="950por-256"):
        dl.crashtest.record("950por-256", ["true"], fs="none")
    with pytest.raises(dl.InputError, match="list of words"):
        dl.crashtest.record("950pro-256", "python3 orders.py")
    with pytest.raises(dl.InputError, match="nowhere.dlog"):
        dl.crashtest.load(tmp_path / "nowhere.dlog").check("true")
    with pytest.raises(dl.InputError, match="true"):
        dl.crashtest.record("950pro-256", ["true"], fs="none")


@pytest.mark.parametrize("synchronous", ["FULL", "EXTRA"])
def test_files_of_a_guest_are_checked_by_a_function(synchronous, monkeypatch):
    needs("mkfs.ext4", "e2fsck", "debugfs")
    root = Path(__file__).resolve().parents[3]
    # Below /tmp, a guest has only the current folder.
    monkeypatch.chdir(root)
    kernel = os.environ.get("DRIVELAB_GUEST_KERNEL", root / "target/guest/linux")
    if not Path(kernel).is_file():
        pytest.skip("no kernel for guests: `cargo xtask guest` builds it")
    program = root / "docs/crashtest/orders.py"
    command = ["env", f"ORDERS_SYNCHRONOUS={synchronous}", PYTHON, str(program)]
    run = dl.crashtest.record("950pro-256", command, guest_kernel=kernel)

    def check(image):
        if not image.acks:
            return None
        found = sqlite3.connect(Path(image.folder) / "orders.db")
        try:
            assert found.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            orders = {str(row[0]) for row in found.execute("SELECT id FROM orders")}
        finally:
            found.close()
        for order in image.acks:
            if order not in orders:
                raise dl.crashtest.Violation(f"lost {order}")
        return None

    result = run.check(check, budget=120, images=100)
    if synchronous == "EXTRA":
        assert result.held, result
        return
    # FULL does not synchronize the folder after the journal is deleted.
    assert [failure["class"] for failure in result.failures] == ["lost"], result
    assert result.failures[0]["needs"] == "nothing"
