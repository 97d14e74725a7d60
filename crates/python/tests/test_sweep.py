"""Sweeps here, on a cluster of two processes of which one is killed, and on one machine's other engines."""

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor

import drivelab as dl
import pytest

SWEEP = """\
drive = ["p4800x-375", "p3700-1600"]
state = "fresh"
seed = { from = 1, count = 100 }
[job]
ioengine = "libaio"
direct = 1
rw = "randread"
bs = "4k"
iodepth = [1, 4]
number_ios = COUNT
"""


def written(folder, count=300):
    path = folder / "reads.toml"
    path.write_text(SWEEP.replace("COUNT", str(count)))
    return path


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    return dl.sweep(written(folder), folder / "reads.parquet")


def test_rows_are_scenarios(alone):
    frame = alone.to_pandas()
    assert len(frame) == alone.scenarios == 400
    assert set(frame["drive"]) == {"p4800x-375", "p3700-1600"}
    assert alone.problems == 0
    assert "400 scenarios" in repr(alone)


def test_a_cluster_that_loses_a_worker_gives_the_same_bytes(alone, tmp_path):
    distributed = pytest.importorskip("distributed")
    path = written(tmp_path)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        killed = []
        keep = dl._core.Sweep.keep

        class Watched:
            """The sweep, which kills a worker when the first part is there."""

            def __init__(self, *asked):
                self.sweep = SweepOfCore(*asked)

            def __getattr__(self, name):
                return getattr(self.sweep, name)

            def keep(self, output, part, file):
                keep(self.sweep, output, part, file)
                if not killed:
                    workers = client.scheduler_info(n_workers=-1)["workers"]
                    victim = sorted(workers)[-1]
                    killed.append(client.run(os.getpid, workers=[victim])[victim])
                    os.kill(killed[0], signal.SIGKILL)

        SweepOfCore = dl._core.Sweep
        dl._core.Sweep = Watched
        try:
            swept = dl.sweep(path, tmp_path / "reads.parquet", client=client)
        finally:
            dl._core.Sweep = SweepOfCore
    assert killed
    assert (tmp_path / "reads.parquet").read_bytes() == alone.path.read_bytes()
    assert swept.to_pandas().equals(alone.to_pandas())


WRITES = """\
drive = ["950pro-256", "960pro-512", "600p-256", "970evo-500"]
state = "steady"
warm_seed = 1
seed = { from = 1, count = 200 }
[job]
ioengine = "libaio"
direct = 1
rw = "randwrite"
bs = "4k"
iodepth = 4
number_ios = 50
"""


def test_parts_that_begin_in_one_state_go_to_one_worker(tmp_path):
    distributed = pytest.importorskip("distributed")
    import dask

    path = tmp_path / "writes.toml"
    path.write_text(WRITES)
    core = dl._core.Sweep(str(path), WRITES, str(tmp_path))
    states = dict(core.missing(tmp_path / "none.parquet"))
    assert len(states) == 8 and len(set(states.values())) == 4
    # A worker may relieve another, which is a matter of chance: not here.
    with dask.config.set({"distributed.scheduler.work-stealing": False}), distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        with distributed.get_task_stream(client) as ran:
            swept = dl.sweep(path, tmp_path / "dask.parquet", client=client)
    workers = {}
    for task in ran.data:
        workers.setdefault(states[task["key"][1]], set()).add(task["worker"])
    assert sorted(len(several) for several in workers.values()) == [1, 1, 1, 1]
    assert len(set().union(*workers.values())) == 2
    dl.sweep(path, tmp_path / "alone.parquet")
    assert (tmp_path / "dask.parquet").read_bytes() == (tmp_path / "alone.parquet").read_bytes()
    assert swept.problems == 0


def test_few_states_are_not_kept_from_workers():
    missing = [(0, (0, 0)), (1, (0, 0)), (2, (1, 0)), (3, (1, 0)), (4, (2, 0))]
    assert dl._placed(missing, ["a", "b"]) == {0: "a", 1: "a", 2: "a", 3: "a", 4: "b"}
    assert dl._placed(missing, ["a", "b", "c", "d"]) == {}
    assert dl._placed([], []) == {}


def test_other_engines_of_one_machine_give_the_same_bytes(alone, tmp_path):
    joblib = pytest.importorskip("joblib")
    path = written(tmp_path)
    dl.sweep(path, tmp_path / "joblib.parquet", client=joblib.Parallel(n_jobs=2))
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as executor:
        dl.sweep(path, tmp_path / "executor.parquet", client=executor)
    for name in ("joblib", "executor"):
        assert (tmp_path / f"{name}.parquet").read_bytes() == alone.path.read_bytes()


def test_a_forked_process_says_so(alone, tmp_path):
    path = written(tmp_path)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as executor:
        with pytest.raises(dl.Error, match="spawn"):
            dl.sweep(path, tmp_path / "forked.parquet", client=executor)


def test_it_goes_on_where_it_was(alone, tmp_path):
    path, output = written(tmp_path), tmp_path / "reads.parquet"
    core = dl._core.Sweep(str(path), path.read_text(), str(tmp_path))
    core.keep(output, 2, bytes(core.part(2)))
    assert [part for part, _ in core.missing(output)] == [0, 1, 3]
    dl.sweep(path, output)
    assert output.read_bytes() == alone.path.read_bytes()
    assert dl.sweep(path, output).scenarios == 400


def test_what_is_wrong_is_told(alone, tmp_path):
    path = written(tmp_path)
    with pytest.raises(dl.InputError, match="another sweep|not of this sweep"):
        dl.sweep(written(tmp_path, 301), alone.path)
    with pytest.raises(dl.InputError, match="cannot be read"):
        dl.sweep(tmp_path / "nothing.toml")
    path.write_text('drive = "p4800x-375"\nseet = 1\n')
    with pytest.raises(dl.InputError) as told:
        dl.sweep(path)
    assert "seet" in str(told.value) and "[job]" in str(told.value)
    core = dl._core.Sweep(str(path), SWEEP.replace("COUNT", "10"), str(tmp_path))
    with pytest.raises(dl.Error):
        core.keep(tmp_path / "new.parquet", 0, b"no Parquet")
