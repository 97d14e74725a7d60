"""pytest: does orders.py survive a power cut? `drivelab` must be in the path."""

import json
import subprocess

import pytest


def crashtest(drive, *options, program, check):
    """Runs a crash test; returns its result, as `drivelab crashtest --json` prints it."""
    command = ["drivelab", "crashtest", drive, "--json", "--limit", "60s", *options]
    command += ["--check", check, "--", *program]
    done = subprocess.run(command, capture_output=True, text=True)
    # 0: no image fails, 3: an image fails. Other codes are errors of the test itself.
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("drive", ["950pro-256", "pm9a3-960"])
def test_orders_survive_power_cuts(drive, tmp_path):
    log = tmp_path / "crash.dlog"
    result = crashtest(
        drive,
        "--budget", "120s", "--images", "40", "--keep-log", str(log),
        program=["python3", "orders.py"],
        check="python3 check.py",
    )
    for failure in result["failures"]:
        again = f"drivelab crashtest --from {log} --image {failure['image']} --check 'python3 check.py'"
        pytest.fail(f"{failure['line']}: needs {failure['needs']}; again: {again}")
    assert result["acknowledgements"] == 10
