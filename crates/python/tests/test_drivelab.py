"""The package as its users have it: values, tables in other libraries, errors, Ctrl-C."""

import doctest
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import typing

import drivelab as dl
from drivelab import _core
import pandas
import polars
import pyarrow
import pytest

AIO = "--ioengine=libaio --direct=1"
READS = f"{AIO} --rw=randread --bs=4k --iodepth=4 --number_ios=5000"


@pytest.fixture(scope="module")
def run():
    return dl.run("p4800x-375", READS)


@pytest.fixture
def interrupted():
    """SIGINT in a second, taken as Ctrl-C is: a shell has its background jobs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    yield
    timer.cancel()
    signal.signal(signal.SIGINT, before)


def test_examples_of_the_docstrings():
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    examples = 0
    for test in finder.find(dl, "drivelab"):
        examples += len(test.examples)
        runner.run(test)
    assert runner.failures == 0
    assert examples > 15


def test_a_run_is_fios(run):
    job = run.json()["jobs"][0]
    assert job["read"]["total_ios"] == 5000
    assert job["job options"]["rw"] == "randread"
    assert "read: IOPS=" in repr(run)
    row = run.rows()[0]
    assert row["ios"] == 5000
    assert row["mean_us"] == pytest.approx(job["read"]["lat_ns"]["mean"] / 1e3, rel=1e-4)


def test_the_same_seed_gives_the_same(run):
    again = dl.run("p4800x-375", READS)
    assert run.json() == again.json()
    other = dl.run("p4800x-375", READS, seed=2)
    assert run.json() != other.json()


def test_tables_go_everywhere(run):
    frames = [run.to_pandas(), pandas.DataFrame.from_arrow(run)]
    assert all(frame["ios"].tolist() == [5000] for frame in frames)
    assert run.to_polars()["iops"].dtype == polars.Float64
    assert polars.DataFrame(run)["drive"].to_list() == ["p4800x-375"]
    table = pyarrow.table(run)
    assert table.schema.field("ios").type == pyarrow.uint64()
    assert table.schema.field("mean_us").type == pyarrow.float64()


def test_no_copy_is_made_for_arrow():
    core = dl.run("p4800x-375", READS)._table()
    one, other = pyarrow.table(core), pyarrow.table(core)
    where = [table.column("mean_us").chunk(0).buffers()[1].address for table in (one, other)]
    assert where[0] == where[1]


def test_a_run_over_time():
    run = dl.run("p4800x-375", f"{AIO} --rw=randwrite --bs=4k --iodepth=8 --runtime=1 --time_based", every="100ms")
    rows = run.over_time().rows()
    # The last write ends a little after the second.
    assert len(rows) in (10, 11)
    assert rows[0]["write_iops"] > 100_000


def test_what_is_no_drive_and_no_option_is_named():
    for drives in [None, 5, [None], ["p4800x-375", 5]]:
        with pytest.raises(dl.InputError, match="(None|5) is not a drive: must be a name"):
            dl.run(drives, "--rw=randread")
    with pytest.raises(dl.InputError, match="5 is not an option of fio: must be a text"):
        dl.run("p4800x-375", 5)


def test_a_missing_module_is_named_with_what_to_do(monkeypatch):
    table = dl.run("ram-disk", "--rw=randread --bs=4k --direct=1 --ioengine=libaio --number_ios=10")
    for name in ["pandas", "polars", "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    for name, method in [("pandas", table.to_pandas), ("polars", table.to_polars), ("pyarrow", table.to_arrow)]:
        with pytest.raises(ModuleNotFoundError, match=f"needs {name}: pip install {name}, or use rows"):
            method()


def test_several_drives_and_pools():
    names = ["p4800x-375", "mirror(2*p4801x-100)"]
    run = dl.run(names, f"{AIO} --rw=randwrite --bs=4k --number_ios=1000")
    assert len(run.rows()) == 2


def test_numbers_that_are_not_finite_are_named():
    for number in (float("nan"), float("inf")):
        with pytest.raises(dl.InputError, match=f"crashes: {number} is not a finite number"):
            dl.odds("p4801x-100", crashes=number)
        with pytest.raises(dl.InputError, match=f"years: (?i:{number})"):
            dl.life("p4801x-100", years=number)
        with pytest.raises(dl.InputError, match=f"years: (?i:{number})"):
            dl.choose("p4801x-100", "web", years=number)
    with pytest.raises(dl.InputError, match="slo: 3"):
        dl.max("p4801x-100", slo=3)


def test_a_drive_is_in_the_condition_it_is_said_to_be():
    sold = dl.Drive("p4610-1600")
    less = dl.Drive("p4610-1600", overprovision="20%", fill="50%")
    assert less.facts["capacity_bytes"] <= 0.8 * sold.facts["capacity_bytes"]
    assert less.facts == sold.set("overprovision", "20%").set("fill", "50%").facts


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dl.Drive("p4800x-376"), ["p4800x-376", "p4800x-375"]),
        (lambda: dl.Drive("p4800x-375").set("xpoint.controller.delai", "6 us"), ["delay"]),
        (lambda: dl.Drive("p4800x-375", power_limit="red", uptime="soon"), ["power_limit", "uptime"]),
        (lambda: dl.Drive("p4800x-375", fill="half", age="old"), ["fill=half", "age=old"]),
        (lambda: dl.fio(f"{AIO} --rw=randread --bs=4q --iodept=3"), ["bs", "iodepth"]),
        (lambda: dl.run("p4800x-375", READS, host="linus", state="old"), ["linux", "steady"]),
        (lambda: dl.run([], READS), ["no drive"]),
        (lambda: dl.replay("nothing.csv", "p4800x-375"), ["nothing.csv"]),
        (lambda: dl.max("p4800x-375", "p99<fast"), ["p99"]),
        (lambda: dl.choose("p4800x-375", "oltq"), ["oltp"]),
        (lambda: dl.choose("p4800x-375", "oltp", by="usd"), ["prices.toml"]),
        (lambda: dl.choose("p4800x-375"), ["no load", "trace="]),
        (lambda: dl.choose("p4800x-375", "oltp", trace="a.csv"), ["one load"]),
        (lambda: dl.choose("p4800x-375", "oltp", rate="fast"), ["rate", "50k"]),
        (lambda: dl.choose("p4800x-375", "kvcache", users=20, rate="2k"), ["users", "one of them"]),
        (lambda: dl.choose("p4800x-375", "oltp", users=20), ["users", "oltp"]),
        (lambda: dl.life("p4800x-375", "kvcache", users=0), ["users", "from 1 to"]),
        (lambda: dl.life("p4800x-375", writes="1DWPD", users=20), ["users", "kvcache"]),
        (lambda: dl.life("p4800x-375", writes="2TB"), ["writes", "2TB/day", "1DWPD"]),
        (lambda: dl.life("p4800x-375", "oltp", writes="1DWPD"), ["one load"]),
        (lambda: dl.life("p4800x-375", "oltp", rate="fast", rw="read"), ["rate: fast", "50k"]),
        (lambda: dl.life("p4800x-375", rate="5k"), ["there is no load", "writes"]),
        (lambda: dl.life("p4800x-375", writes="1DWPD", rw="read", runtime="soon"), ["rw: read", "randwrite", "runtime: soon"]),
        (lambda: dl.life("p4800x-375", "oltp", runtime="1us"), ["runtime", "500ms"]),
        (lambda: dl.explain("nothing.json"), ["nothing.json"]),
        (lambda: dl.check("etc", "p4800x-375"), ["etcd", "postgres"]),
        (lambda: dl.size("vsan-cache", "p4800x-375", "950pro-256", "wal"), ["read-cache", "program"]),
        (lambda: dl.size("read-cache", "p4800x-375", "950pro-256", "wal"), ["trace"]),
        (lambda: dl.prove("950pro-256"), ["not a pool", "mirror"]),
        (lambda: dl.mix("p4800x-375", rw="randread"), ["rw randread", "not a mix", "randrw"]),
        (lambda: dl.mix("p4800x-375", iodepth=1, step=0, seeds=0), ["iodepth: 1", "2 to 1024", "step: 0", "seeds"]),
        (lambda: dl.mix("p4800x-375", options={"iodepth": 4}), ["iodepth: is set by the search"]),
        (lambda: dl.fill("990pro-2000", bs="3k", used=(50, 101)), ["bs 3k", "multiple of 4k", "used: 101", "0 to 100"]),
        (lambda: dl.fill("990pro-2000", used=[]), ["used", "is empty"]),
        (lambda: dl.fill(dl.Drive("990pro-2000", fill="50%")), ["fill: `fill` tries", "used 50,90"]),
        (lambda: dl.fill("mirror(2*p4801x-100)"), ["single drives", "`drivelab run --over-time`"]),
        (lambda: dl.odds("gp3", afr={"970pro": "1%"}), ["afr gp3=0.2%", "afr 970pro=", "called 970pro"]),
        (lambda: dl.odds("p4801x-100", replace_after="24", afr="0.5", crashes=-1), ["24h, 90min", "afr: 0.5", "0 to 1000"]),
        (lambda: dl.max("p4800x-375", "p99<1ms", numjobs=0, rwmixread=101), ["numjobs: 0", "rwmixread: 101", "0 to 100"]),
        (lambda: dl.life("p4800x-375", "oltp", state="stedy"), ["stedy", "steady"]),
        (lambda: dl.choose("p4800x-375", "oltp", state="stedy"), ["stedy", "steady"]),
        (lambda: dl.run(dl.Drive("p4610-1600", fill="50%"), READS, state="fresh"), ["fill", "state fresh", "holds no data"]),
        (lambda: dl.mix(dl.Drive("p4610-1600", fill="50%"), state="fresh"), ["fill", "state fresh", "holds no data"]),
        (lambda: dl.fit("p4800x-375", "nothing.json"), ["nothing.json"]),
        (lambda: dl.review("p4800x-375", suite="quik"), ["quick"]),
        (lambda: dl.act("p4800x-375", load=0, queues=4, duration=-1), ["0.001", "version=3", "31536000"]),
        (lambda: dl.act("p4800x-375", host="esxi-nuc"), ["xeon-2017"]),
        (lambda: dl.act("p4800x-375", config="nothing.conf"), ["nothing.conf"]),
    ],
)
def test_what_is_wrong_is_told_with_what_would_be_right(call, words):
    with pytest.raises(dl.InputError) as told:
        call()
    for word in words:
        assert word in str(told.value)


def test_errors_are_the_programs():
    program = os.environ.get("DRIVELAB")
    if program is None:
        pytest.skip("DRIVELAB names no program to compare with")
    said = subprocess.run([program, "show", "p4800x-376"], capture_output=True, text=True, check=False)
    with pytest.raises(dl.InputError) as told:
        dl.Drive("p4800x-376")
    assert str(told.value).strip() == said.stderr.strip()


def test_numbers_are_the_programs(tmp_path):
    program = os.environ.get("DRIVELAB")
    if program is None:
        pytest.skip("DRIVELAB names no program to compare with")
    out = tmp_path / "out.csv"
    subprocess.run([program, "run", "p3700-1600", *READS.split(), f"--csv={out}"], check=True, capture_output=True)
    ours = dl.run("p3700-1600", READS).rows()
    theirs = pandas.read_csv(out).to_dict("records")
    assert [row["mean_us"] for row in ours] == [row["mean_us"] for row in theirs]


def test_ctrl_c_stops_a_run_and_gives_what_there_is(interrupted):
    begun = time.monotonic()
    with pytest.warns(UserWarning, match="stopped"):
        run = dl.run("p4800x-375", f"{AIO} --rw=randread --bs=4k --iodepth=32 --runtime=1000 --time_based")
    assert time.monotonic() - begun < 20
    assert run.stopped
    assert run.rows()[0]["ios"] > 1000


def test_ctrl_c_ends_a_question(interrupted):
    with pytest.raises(KeyboardInterrupt):
        dl.review(["p4800x-375", "p3700-1600"])


def test_others_run_meanwhile():
    ticks = []
    done = threading.Event()

    def tick():
        while not done.wait(0.005):
            ticks.append(1)

    other = threading.Thread(target=tick)
    other.start()
    dl.run("p3700-1600", f"{AIO} --rw=randwrite --bs=4k --iodepth=32 --number_ios=200000")
    done.set()
    other.join()
    assert len(ticks) > 10


def test_an_answer(tmp_path):
    answer = dl.max("p4800x-375", "p99<100us", ios=3000, seeds=1)
    assert answer and answer.meets
    assert "p4800x-375" in str(answer)
    assert "drivelab.max(['p4800x-375'], slo='p99<100us'" in repr(answer)
    again = eval(repr(answer).split("Repeat: ")[1], {"drivelab": dl})
    assert again.json() == answer.json()
    page = answer.save(tmp_path / "max.html")
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert not dl.max("950pro-256", "p99<1us", ios=3000, seeds=1)


def test_the_call_that_repeats_an_answer_keeps_settings_state_and_mix():
    drive = dl.Drive("p4800x-375", power_limit="12W").set("xpoint.controller.delay", "9 us")
    short = {"runtime": "50ms", "seeds": 1}
    answers = [
        dl.max(drive, "read.p99<300us", rw="randrw", rwmixread=90, state="fresh", ios=100_000, seeds=1),
        dl.life(drive, dl.fio(f"{AIO} --rw=randwrite --bs=4k --iodepth=4 --runtime=1 --time_based"), state="filled", **short),
        dl.life(drive, writes="1DWPD", bs="32k", **short),
        dl.choose(drive, "kvcache", users=20, **short),
        dl.life(drive, "kvcache", users=20, **short),
        dl.choose(["950pro-256"], "wal", rate="2k", like=drive, state="filled", **short),
        dl.check("etcd", drive, state="fresh", host="xeon-2017", seeds=1),
        dl.size("slog", "p4801x-100", "950pro-256", "wal", runtime="6s", slo="p99<5ms", seeds=1),
        dl.mix(drive, rw="rw", step=50, bs="8k", iodepth=8, options={"size": "20%"}, ios=1000, state="fresh", seeds=1),
        dl.fill(drive, used=80, random=True, iodepth=4, seeds=1),
        dl.odds([drive, "mirror(2*p4801x-100)"], replace_after="3d", afr=["1%", "p4801x-100=0.2%"], crashes=2),
    ]
    for answer in answers:
        again = eval(answer.json()["command"], {"drivelab": dl})
        assert again.json() == answer.json()


ASKED = {
    "max": (lambda drives: dl.max(drives, "p99<1ms"), {"slo": "p99<1ms"}),
    "mix": (dl.mix, {}),
    "fill": (dl.fill, {}),
    "check": (lambda drives: dl.check("etcd", drives), {"software": "etcd"}),
    "odds": (dl.odds, {}),
    "life": (dl.life, {}),
}
VALUES = {
    "slo": ["read.p99<2ms,iops>50k", "it's"],
    "software": ["vsan", "etcd"],
    "rw": ["randrw", "write"],
    "rwmixread": [0, 100],
    "step": [1, 100],
    "bs": ["8k", "back\\slash"],
    "iodepth": [2, 1024],
    "numjobs": [1, 256],
    "fio": [[["size", "20%"]], [["a", "b=c"], ["d", "it's"]]],
    "used": [[0], [100, 0]],
    "random": [True],
    "ios": [1000],
    "replace_after": ["90min"],
    "afr": [["1%"], ["0.5%", "p4801x-100=0.2%"]],
    "crashes": [0, 2.5],
    "years": [2.5, 10],
    "host": ["xeon-2017"],
    "state": ["fresh", "steady"],
    "seed": [2, 2**53 - 1],
    "seeds": [1, 20],
    "load": ["wal", {"options": [*AIO.split(), "--rw=randwrite", "--name=it's b"], "files": [], "sections": []}],
    "job": ["my job.fio"],
    "trace": ["a.csv", "it's.csv"],
    "users": [1, 20],
    "rate": ["50k", "2TB/day"],
    "writes": ["1DWPD", "100MB/s"],
    "runtime": ["50ms", "2s"],
}


@pytest.fixture
def asked(monkeypatch):
    """The questions that are asked, instead of their answers."""
    questions = []
    monkeypatch.setattr(_core, "ask", lambda *question: questions.append(question))
    return questions


@pytest.mark.parametrize("name", ASKED)
def test_a_call_without_keywords_has_the_defaults_of_the_request(asked, name):
    call, given = ASKED[name]
    call("p4800x-375")
    _, request = _core._repeated(*asked[0])
    usual = json.loads(_core.defaults(name)) | given | {"drives": [{"name": "p4800x-375"}]}
    assert json.loads(request) == usual


@pytest.mark.parametrize("name", ASKED)
def test_the_call_that_repeats_a_request_makes_it_again(asked, name):
    fields = [key for key in json.loads(_core.defaults(name)) if key != "drives"]
    assert set(fields) <= set(VALUES)
    plain, hot = dl.Drive("p4800x-375"), dl.Drive("p4610-1600", fill="80%", age="3y@20MB/s")
    changed = dl.Drive("p4800x-375", power_limit="12W", wear_factor=1e5).set("xpoint.controller.delay", "9 us")
    for seed in range(200):
        draw = random.Random(seed)
        given = ASKED[name][1] | {key: draw.choice(VALUES[key]) for key in fields if draw.random() < 0.5}
        drives = [drive._core for drive in draw.sample([plain, hot, changed], draw.randint(1, 3))]
        call, request = _core._repeated(name, drives, json.dumps(given))
        asked.clear()
        eval(call, {"drivelab": dl})
        assert _core._repeated(*asked[0])[1] == request, call


def test_defaults_are_the_programs(tmp_path):
    program = os.environ.get("DRIVELAB")
    if program is None:
        pytest.skip("DRIVELAB names no program to compare with")
    prices = tmp_path / "prices.toml"
    prices.write_text('[drives]\np4800x-375 = "450 USD"\n950pro-256 = "90 USD"\n')
    pool = "intent-log(main=950pro-256, log=p4801x-100)"
    both = ["p4800x-375", "950pro-256"]
    slo = "p99<400us"
    for words, answer in [
        (["max", "p4800x-375", "--slo", slo, "--rw=randrw", "--ios=20000"], lambda: dl.max("p4800x-375", slo, rw="randrw", ios=20_000)),
        (["max", "p4800x-375", "--slo", slo, "--rw=read", "--ios=3000"], lambda: dl.max("p4800x-375", slo, rw="read", ios=3000)),
        (["choose", pool, "--load=wal"], lambda: dl.choose(pool, "wal")),
        (["life", pool, "--load=wal"], lambda: dl.life(pool, "wal")),
        (["choose", *both, "--load=wal", "--usd", prices], lambda: dl.choose(both, "wal", usd=prices)),
        (["choose", *both, "--load=wal", "--rate=2k"], lambda: dl.choose(both, "wal", rate="2k")),
        (["check", "etcd", "p4800x-375"], lambda: dl.check("etcd", "p4800x-375")),
        (["choose", *both, "--load=kvcache", "--users=20"], lambda: dl.choose(both, "kvcache", users=20)),
        (["life", *both, "--load=kvcache", "--users=20"], lambda: dl.life(both, "kvcache", users=20)),
        (["life", *both, "--writes=1DWPD"], lambda: dl.life(both, writes="1DWPD")),
        (["mix", "p4800x-375"], lambda: dl.mix("p4800x-375")),
        (["mix", *both, "--rw=rw", "--ios=2000"], lambda: dl.mix(both, rw="rw", ios=2000)),
        (["fill", "950pro-256"], lambda: dl.fill("950pro-256")),
        (["fill", "950pro-256", "--random", "--used=90"], lambda: dl.fill("950pro-256", random=True, used=90)),
        (["odds", *both, "mirror(2*950pro-256)"], lambda: dl.odds([*both, "mirror(2*950pro-256)"])),
        (["odds", pool, "--afr=1%", "--afr=950pro-256=2%"], lambda: dl.odds(pool, afr=["1%", "950pro-256=2%"])),
        (["odds", pool, "--afr=950pro-256=2%", "--crashes=3"], lambda: dl.odds(pool, afr={"950pro-256": "2%"}, crashes=3)),
    ]:
        said = subprocess.run([program, *words, "--json"], capture_output=True, text=True, check=False)
        told, ours = json.loads(said.stdout), answer().json()
        for one in (told, ours):
            one["command"] = one["program"] = ""
        assert told == ours, words


def test_a_star_import_keeps_pythons_own():
    names = {}
    exec("from drivelab import *", names)
    assert "max" not in names and "run" in names
    assert set(dl.__all__) <= set(dir(dl))
    assert not set(dl.__all__) & set(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)


def test_types_of_words_are_those_that_are_taken():
    for kind, call in [
        (dl._Software, lambda: dl.check("x", "p4800x-375")),
        (dl._Suite, lambda: dl.review("p4800x-375", suite="x")),
        (dl._By, lambda: dl.choose("p4800x-375", "wal", by="x")),
        (dl._Start, lambda: dl.run("p4800x-375", READS, state="x")),
        (dl._State, lambda: dl.check("etcd", "p4800x-375", state="x")),
        (dl._Place, lambda: dl.in_place("x", "p4800x-375", "950pro-256")),
    ]:
        with pytest.raises(dl.InputError) as told:
            call()
        for word in typing.get_args(kind):
            assert word in str(told.value), (word, str(told.value))


def test_older_pandas_get_the_same_frame(run, monkeypatch):
    frame = run.to_pandas()
    if hasattr(pandas.DataFrame, "from_arrow"):
        monkeypatch.delattr(pandas.DataFrame, "from_arrow")
    pandas.testing.assert_frame_equal(run.to_pandas(), frame, check_dtype=False, check_column_type=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    by_row = run.to_pandas()
    assert list(by_row.columns) == list(frame.columns)
    assert by_row["iops"].tolist() == frame["iops"].tolist()


def test_a_run_explained_a_trace_chosen_for_and_promises_proved(tmp_path):
    results = tmp_path / "r.json"
    results.write_text(json.dumps(dl.run("p4800x-375", READS).json()))
    alone = dl.explain(results)
    assert alone.rows() and "thread" in str(alone)
    with_model = dl.explain(results, "p4800x-375", seeds=1)
    assert with_model.json()["answers"][0]["model"]
    trace = tmp_path / "io.csv"
    lines = [f"{128166372003061629 + i * 1000},hm,0,{'Read' if i % 2 else 'Write'},{i * 4096},4096,100" for i in range(500)]
    trace.write_text("\n".join(lines) + "\n")
    chosen = dl.choose(["950pro-256", "p3700-1600"], trace=trace, like="p4800x-375", seeds=1)
    assert str(chosen).startswith("To replace p4800x-375") and len(chosen.rows()) == 3
    disk = dl.choose("wd6001fzwx", "oltp", like="p4800x-375", runtime="50ms", seeds=1)
    assert str(disk).startswith("No drive that ran replaces p4800x-375") and not disk.meets
    cache = dl.size("read-cache", "p4800x-375", "exos-x18-16tb", trace=trace, seeds=1)
    assert cache.rows()[0]["hits"] is not None
    proof = dl.prove("mirror(2*950pro-256)", points=100, fault="power cut")
    assert proof and all(row["verdict"] for row in proof.rows())
    assert "power cut" in repr(proof)
    page = dl.check("etcd", "p4800x-375", seeds=1).save(tmp_path / "check.html")
    assert "<caption>" in page.read_text(encoding="utf-8")


def test_aerospikes_test(tmp_path):
    short = {"duration": 1, "warm_up": 0}
    drives = ["p4800x-375", "optane-memory-16"]
    tested = dl.act(drives, load=200, **short)
    assert not tested and not tested.passes
    verdicts = {row["drive"]: row["passes"] for row in tested.rows()}
    assert verdicts["optane-memory-16"] is False
    assert dl.act("p4800x-375", load=10, **short).passes
    scored = dl.act("optane-memory-16", **short)
    score = scored.scores()["optane-memory-16"]
    assert 0 < score < 200
    assert scored.rows()[0]["load"] == score
    assert "after 1 sec:" in scored.log()
    program = os.environ.get("DRIVELAB")
    if program is not None:
        words = ["act", *drives, "--load", "200", "--duration", "1", "--warm-up", "0", "--output-format", "json"]
        said = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        assert said.returncode == 3
        # A program for development does not name its commit, and the wheel does.
        answers = [json.loads(said.stdout), tested.json()]
        assert answers[1]["program"] == f"drivelab {dl.__version__}"
        told, asked = [{**answer, "program": ""} for answer in answers]
        assert told == asked


def test_ctrl_c_ends_a_long_test(interrupted):
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        dl.act("p4800x-375", load=100, duration=100_000)
    assert time.monotonic() - begun < 20


def test_a_member_dies_in_the_middle(tmp_path):
    script = tmp_path / "script"
    script.write_text("at 20ms p4801x-100.0: dies\n")
    jobs = f"{AIO} --rw=randread --bs=4k --iodepth=16 --numjobs=4 --group_reporting --runtime=50ms --time_based"
    run = dl.run("mirror(2*p4801x-100)", jobs, fault=script)
    before, after = run.json()["phases"]
    assert before["read"]["iops"] > 1.5 * after["read"]["iops"] > 0
    script.write_text("at 20ms p4801x-100.7: dies\nat 1s p4801x-100.0: explodes\n")
    with pytest.raises(dl.InputError) as refused:
        dl.run("mirror(2*p4801x-100)", jobs, fault=script)
    assert "explodes" in str(refused.value)


def test_a_member_is_rebuilt(tmp_path):
    script = tmp_path / "script"
    script.write_text("at 20ms p4801x-100.1: dies\nat 40ms p4801x-100.1: returns\n")
    jobs = f"{AIO} --rw=randwrite --bs=4k --size=64m --norandommap --runtime=300ms --time_based"
    run = dl.run("raid5(3*p4801x-100)", jobs, fault=script).json()
    (rebuild,) = run["rebuilds"]
    assert rebuild["member"] == "p4801x-100.1" and rebuild["in_sync"] and rebuild["bytes_written"] > 0
    assert run["phases"][-1]["after"] == "p4801x-100.1: in sync"


def test_guests_share_a_drive():
    jobs = f"{AIO} --rw=randread --bs=4k --iodepth=4 --runtime=20ms --time_based"
    guests = dl.run("p4801x-100", jobs, guests=3).json()["guests"]
    assert [it["guest"] for it in guests["guests"]] == [1, 2, 3] and guests["fairness"] > 0.99
    with pytest.raises(dl.InputError, match="guests"):
        dl.run("p4801x-100", f"{jobs} --size=60g", guests=3)


def test_a_run_with_heat_has_a_temperature():
    jobs = f"{AIO} --rw=write --bs=128k --iodepth=8 --runtime=100ms --time_based"
    hot = dl.run(dl.Drive("p3700-1600").set("thermal.ambient", "55 C"), jobs, heat=True)
    assert max(row["celsius"] for row in hot.over_time().rows()) > 55
    with pytest.raises(dl.InputError, match="without load"):
        dl.run(dl.Drive("p3700-1600").set("thermal.ambient", "84 C"), jobs, heat=True)


def test_a_fit_finds_the_drive(tmp_path):
    slow = dl.Drive("p4800x-375").set("xpoint.controller.delay", "9 us")
    files = []
    for depth in (1, 4, 16):
        run = dl.run(slow, f"{AIO} --name=q{depth} --rw=randread --bs=4k --iodepth={depth} --number_ios=4000")
        files.append(tmp_path / f"{depth}.json")
        files[-1].write_text(json.dumps(run.json()))
    fitted = dl.fit("p4800x-375", files, hold_out=0, free=["xpoint.controller.delay"], iterations=12)
    path = fitted.save(tmp_path / "mine.toml")
    again = dl.run(path, f"{AIO} --rw=randread --bs=4k --number_ios=4000").rows()[0]
    wanted = dl.run(slow, f"{AIO} --rw=randread --bs=4k --number_ios=4000").rows()[0]
    assert again["mean_us"] == pytest.approx(wanted["mean_us"], rel=0.03)
    with pytest.raises(dl.InputError):
        fitted.save(path)


def test_a_trace(tmp_path):
    trace = tmp_path / "io.csv"
    lines = [f"{128166372003061629 + i * 1000},hm,0,{'Read' if i % 2 else 'Write'},{i * 4096},4096,100" for i in range(500)]
    trace.write_text("\n".join(lines) + "\n")
    replay = dl.replay(trace, ["p4800x-375", "950pro-256"])
    assert {row["drive"] for row in replay.rows()} >= {"p4800x-375", "950pro-256"}
    assert replay.json()["drives"]


def test_pictures(run):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = run.plot().axes[0]
    assert axes.get_xlabel() == "percentile"
    assert len(axes.lines) == 1
    assert run._repr_html_().startswith("<pre>")


def test_a_panic_becomes_an_exception():
    with pytest.raises(dl.Defect, match="a fault of drivelab itself: planted"):
        _core._broken_off("planted")
    # And nothing is the worse for it.
    assert dl.run("p4800x-375", READS).to_pandas() is not None


def test_a_stub_for_every_name():
    assert sys.version_info >= (3, 10)
    missing = [name for name in dl.__all__ if not hasattr(dl, name)]
    assert missing == []


def test_types_hold(tmp_path):
    """The stubs are what is there, and the package agrees with its own annotations."""
    missing = "--ignore-missing-stub"  # what the compiled module has beside its names, such as `__all__`
    # pandas and its like are not typed, or their stubs are not installed: that is theirs to mend.
    types = ["mypy", "--follow-imports=skip", "--disable-error-code=import-untyped", "-p", "drivelab"]
    for check in (["mypy.stubtest", "drivelab._core", missing, "--concise"], types):
        done = subprocess.run([sys.executable, "-m", *check], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
