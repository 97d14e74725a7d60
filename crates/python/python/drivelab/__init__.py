"""SSDs and storage tiers in software: simulate, replay, review, choose and fit drives.

    >>> import drivelab as dl
    >>> run = dl.run("p4800x-375", dl.fio("--ioengine=libaio --direct=1 --rw=randread --bs=4k --iodepth=16 --number_ios=20000"))
    >>> row = run.rows()[0]
    >>> row["direction"], row["queue_depth"], row["iops"] > 100_000
    ('read', 16, True)

Each function does what the subcommand of `drivelab` with its name does, with the same defaults and the same results: equal
seeds give equal bytes. The name of a figure ends with its unit (``mean_us``, ``mb_s``); ``docs/csv.md`` describes each figure.
Tables are passed to pandas, polars and Arrow without a copy: ``run.to_pandas()``, ``polars.DataFrame(run)``,
``pyarrow.table(run)``.

Invalid input raises `InputError` with the text that the program prints: all problems at once, each with the allowed values.
Ctrl-C stops `run` and `replay`, which then return the results so far (``stopped`` is true, and a warning is issued). Ctrl-C
ends all other functions without a result.
"""

from __future__ import annotations

import html as _html
import importlib as _importlib
import json as _json
import os as _os
import shlex as _shlex
import uuid as _uuid
import warnings as _warnings
from collections.abc import Iterable as _Iterable
from pathlib import Path as _Path
from typing import TYPE_CHECKING, Any as _Any, Literal as _Literal, Optional as _Optional, Union as _Union

from . import _core, crashtest
from ._core import Defect, Error, InputError, __version__

# `max` is left out: `from drivelab import *` must not replace Python's own.
__all__ = [
    "Act",
    "Answer",
    "Defect",
    "Drive",
    "Error",
    "Fit",
    "InputError",
    "Jobs",
    "Proof",
    "Replay",
    "Review",
    "Run",
    "Sweep",
    "act",
    "check",
    "choose",
    "crashtest",
    "drives",
    "explain",
    "fill",
    "fio",
    "fit",
    "hosts",
    "in_place",
    "life",
    "mix",
    "odds",
    "pools",
    "prove",
    "replay",
    "review",
    "run",
    "size",
    "sweep",
    "__version__",
]

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas
    import polars
    import pyarrow

_HOST = _core.TYPICAL_HOST
_Path_ = _Union[str, "_os.PathLike[str]"]
_Start = _Literal["auto", "fresh", "filled", "steady"]
_State = _Literal["fresh", "filled", "steady"]
_Rw = _Literal["read", "write", "randread", "randwrite", "rw", "readwrite", "randrw"]
_Writes = _Literal["write", "randwrite"]
_Mixed = _Literal["randrw", "rw", "readwrite"]
_By = _Literal["usd", "watt", "iops", "p99", "years"]
_Place = _Literal["slog", "vsan-cache", "read-cache"]
_Sized = _Literal["slog", "read-cache"]
_Software = _Literal["etcd", "postgres", "kafka", "zil", "vsan", "aerospike"]
_Suite = _Literal[
    "quick", "full", "anandtech-2017", "virten-2017", "perftest", "slog", "hcibench", "cache-warmup", "under-load", "snia", "heat", "rebuild"
]
_Drives = _Union[_Path_, "Drive", "_Iterable[_Union[_Path_, Drive]]"]


def _module(name, method):
    """An optional module that a method needs."""
    try:
        return _importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ModuleNotFoundError(f"{method} needs {name}: pip install {name}, or use rows()", name=name) from None


class _Tabular:
    """Result with a table, which is exported by Arrow's C data interface."""

    def _table(self):
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table().__arrow_c_stream__(requested_schema)

    def rows(self) -> list[dict[str, _Any]]:
        """The table as a list of dictionaries, one a line; ``None`` where there is no figure."""
        return self._table().rows()

    def to_arrow(self) -> pyarrow.Table:
        """The table as a `pyarrow.Table`."""
        pyarrow = _module("pyarrow", "to_arrow()")
        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a `pandas.DataFrame`: without a copy by pandas 3, by pyarrow or row by row by older ones."""
        pandas = _module("pandas", "to_pandas()")
        if hasattr(pandas.DataFrame, "from_arrow"):
            return pandas.DataFrame.from_arrow(self)
        try:
            return self.to_arrow().to_pandas()
        except ImportError:
            table = self._table()
            return pandas.DataFrame(table.rows(), columns=table.column_names)

    def to_polars(self) -> polars.DataFrame:
        """The table as a `polars.DataFrame`."""
        polars = _module("polars", "to_polars()")
        return polars.DataFrame(self)

    def _text(self):
        return ""

    def __repr__(self):
        return self._text()

    def _repr_html_(self):
        return f"<pre>{_html.escape(self._text())}</pre>"


class Drive:
    """A drive or pool: a name of the catalogue, the path of a TOML file, or the expression of a pool.

    >>> import drivelab as dl
    >>> drive = dl.Drive("p4800x-375", power_limit="12W")
    >>> drive.set("xpoint.controller.delay", "6 us").id
    'p4800x-375'
    >>> dl.Drive("mirror(2*p4801x-100)").facts["capacity_bytes"] < 100_030_242_816
    True
    >>> dl.Drive("p4800x-376")
    Traceback (most recent call last):
    ...
    drivelab.InputError: ...

    Settings: ``power_limit`` ("12W"), ``lba_format`` ("4096", "4096+8"), ``percentage_used`` (as in SMART, such as 104),
    ``uptime`` ("10min"), ``volume`` (of a pool). Condition of the drive: ``overprovision`` ("20%", the share of the capacity
    that is added to the spare area), ``fill`` ("80%", the share that holds data; the rest is trimmed), ``age`` ("3y", or
    "3y@20MB/s"). ``wear_factor`` multiplies the wear of each byte written, such as 1e5.
    """

    def __init__(
        self,
        name: _Path_,
        *,
        power_limit: str | None = None,
        lba_format: str | int | None = None,
        percentage_used: float | None = None,
        uptime: str | None = None,
        volume: str | None = None,
        overprovision: str | None = None,
        fill: str | None = None,
        age: str | None = None,
        wear_factor: float | None = None,
    ) -> None:
        name = _os.fspath(name)
        settings = {
            "power_limit": power_limit,
            "lba_format": lba_format,
            "percentage_used": percentage_used,
            "uptime": uptime,
            "overprovision": overprovision,
            "fill": fill,
            "age": age,
            "wear_factor": wear_factor,
        }
        options = [(key.replace("_", "-"), str(value)) for key, value in settings.items() if value is not None]
        self._core = _core.Drive(name, options, volume)
        self._name = name
        settings["volume"] = volume
        said = [f"{key}={value!r}" for key, value in settings.items() if value is not None]
        # The call that makes it again; a name suffices where nothing is set.
        self._call = f"drivelab.Drive({', '.join([repr(name), *said])})" if said else repr(name)

    @classmethod
    def _of(cls, name, core, call):
        drive = cls.__new__(cls)
        drive._core, drive._name, drive._call = core, name, call
        return drive

    def set(self, key: str, value: object) -> Drive:
        """Returns a copy of the drive with one figure changed; `figures` lists the keys."""
        call = self._call if self._call.startswith("drivelab.") else f"drivelab.Drive({self._call})"
        return Drive._of(self._name, self._core.set(key, str(value)), f"{call}.set({key!r}, {str(value)!r})")

    @property
    def id(self) -> str:
        """Short name of the drive."""
        return self._core.id

    @property
    def facts(self) -> dict[str, _Any]:
        """Catalogue data of the drive, as in ``drivelab show --json``, without its figures."""
        return _json.loads(self._core.json(False))

    @property
    def figures(self) -> list[dict[str, _Any]]:
        """Figures of the drive, each with key, value, kind and source."""
        return _json.loads(self._core.json(True)).get("figures", [])

    def __repr__(self):
        settings = self._core.words()
        return f"Drive({self._name!r})" + (f" with {', '.join(settings)}" if settings else "")

    def _repr_html_(self):
        return f"<pre>{_html.escape(self._core.text())}</pre>"

    def __str__(self):
        return self._core.text()


def drives() -> list[str]:
    """The names of the catalogue's drives.

    >>> import drivelab as dl
    >>> "p4800x-375" in dl.drives()
    True
    """
    return _core.names("drives")


def pools() -> list[str]:
    """The names of the catalogue's pools."""
    return _core.names("pools")


def hosts() -> list[str]:
    """The names of the hosts that drives can be in.

    >>> import drivelab as dl
    >>> "linux" in dl.hosts()
    True
    """
    return _core.names("hosts")


class Jobs:
    """fio jobs; see `fio`."""

    def __init__(self, core, words, spec):
        self._core, self._words, self._spec = core, words, spec

    @property
    def names(self) -> list[str]:
        """Names of the jobs."""
        return self._core.names()

    def __repr__(self):
        return f"fio({self._words})"


def fio(*options: str, files: _Path_ | _Iterable[_Path_] = (), sections: str | _Iterable[str] = ()) -> Jobs:
    """fio jobs: options as on fio's command line, or job files. Options that are given with files override the files.

    >>> import drivelab as dl
    >>> dl.fio("--name=a --direct=1 --ioengine=libaio --rw=randread --bs=4k", "--size=1g --iodepth=4").names
    ['a']
    >>> dl.fio("--rw=randread --bs=4q")
    Traceback (most recent call last):
    ...
    drivelab.InputError: ...

    As in fio, ``--ioengine=libaio --direct=1`` is what keeps a queue depth; options that mean nothing to a model are ignored with
    a warning.
    """
    for option in options:
        if not isinstance(option, str):
            raise InputError(f"{option!r} is not an option of fio: must be a text, such as '--rw=randread --bs=4k'")
    words = [word for option in options for word in _shlex.split(option)]
    words = [f"--{word.lstrip('-')}" for word in words]
    paths = [files] if isinstance(files, (str, _os.PathLike)) else list(files)
    spec = {
        "options": words,
        "files": [_os.fspath(path) for path in paths],
        "sections": [sections] if isinstance(sections, str) else list(sections),
    }
    core = _core.Jobs(spec["options"], files=[*spec["files"]], sections=spec["sections"])
    for warning in core.warnings():
        _warnings.warn(warning, stacklevel=2)
    said = [repr(option) for option in options]
    said += [f"files={spec['files']!r}"] if paths else []
    return Jobs(core, ", ".join(said), spec)


def _drives(named):
    """One drive or several, by name or as they are."""
    is_one = isinstance(named, (str, _os.PathLike, Drive)) or not hasattr(named, "__iter__")
    several = [named] if is_one else list(named)
    for one in several:
        if not isinstance(one, (str, _os.PathLike, Drive)):
            raise InputError(f"{one!r} is not a drive: must be a name, a Drive, or several of them in a list")
    if not several:
        raise InputError("no drive is named: drivelab.drives() lists them")
    drives = [one if isinstance(one, Drive) else Drive(one) for one in several]
    return [drive._core for drive in drives], drives


def _jobs(asked):
    """Jobs, or the text of their options."""
    if isinstance(asked, Jobs):
        return asked._core
    if isinstance(asked, _os.PathLike):
        return fio(files=asked)._core
    return fio(asked)._core


def _told(result):
    """The result, with a warning if it was stopped."""
    if result._core.stopped:
        _warnings.warn("stopped: these are the results so far", stacklevel=3)
    return result


def _axes(what):
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"plot() draws with matplotlib, for {what}: pip install matplotlib") from error
    return plt.subplots()


_PERCENTILES = [(50, "p50_us"), (99, "p99_us"), (99.9, "p99_9_us"), (99.99, "p99_99_us"), (99.999, "p99_999_us")]


def _latencies(rows):
    """Draws latency over percentiles, a line for each row."""
    figure, axes = _axes("latency over percentiles")
    for row in rows:
        known = [(share, row[name]) for share, name in _PERCENTILES if row.get(name) is not None]
        label = " ".join(str(row[name]) for name in ("drive", "point", "direction") if row.get(name))
        axes.plot([1 / (1 - share / 100) for share, _ in known], [us for _, us in known], "o-", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([1 / (1 - share / 100) for share, _ in _PERCENTILES], [f"{share}" for share, _ in _PERCENTILES])
    axes.minorticks_off()
    axes.set_xlabel("percentile")
    axes.set_ylabel("latency (us)")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


class Run(_Tabular):
    """Results of fio jobs: a line for each drive, job and direction.

    ``str(run)`` is the text that fio would print; ``json()`` is fio's JSON.
    """

    def __init__(self, core):
        self._core = core

    def _table(self):
        return self._core.table()

    def _text(self):
        return self._core.text("normal")

    @property
    def stopped(self) -> bool:
        """Whether it was stopped before its end."""
        return self._core.stopped

    def json(self, bins: bool = False) -> dict[str, _Any]:
        """fio's JSON; with all bins of its histograms (``json+``) if they are asked for."""
        return _json.loads(self._core.text("json+" if bins else "json"))

    def over_time(self) -> Table:
        """The run over time: a line for each drive and interval (see ``every`` of `run`)."""
        return Table(self._core.over_time())

    def plot(self) -> matplotlib.figure.Figure:
        """Latency over percentiles, as a figure of matplotlib's."""
        return _latencies(self.rows())


class Table(_Tabular):
    """A table."""

    def __init__(self, core):
        self._core = core

    def _table(self):
        return self._core

    def _text(self):
        rows = self.rows()
        return f"{len(rows)} rows: {', '.join(self._core.column_names)}"


def run(
    drives: _Drives,
    jobs: Jobs | _Path_,
    *,
    host: str = _HOST,
    state: _Start = "auto",
    seed: int = 1,
    every: str | None = None,
    fault: _Path_ | None = None,
    heat: bool = False,
    guests: int | None = None,
) -> Run:
    """Runs fio's jobs on a drive or several.

    ``state``: the initial state: fresh, filled, steady (random writes), or auto (filled before sequential loads, otherwise steady).
    ``every``: the length of intervals of `Run.over_time` ("100ms").
    ``fault``: a fault script, such as a line ``at 2s nda.0: dies``; results before and after each fault are in ``json()["phases"]``, rebuilds of pool members in ``json()["rebuilds"]``.
    ``heat``: simulates the temperature of each drive, which throttles itself when it is too hot; the air is that of the drive's figures ``thermal.ambient`` and ``thermal.airflow``.
    ``guests``: runs the jobs in this number of virtual machines, each on its own share of the smallest drive; their figures are in ``json()["guests"]``.

    >>> import drivelab as dl
    >>> run = dl.run(["p4800x-375", "p3700-1600"], "--ioengine=libaio --direct=1 --rw=randread --bs=4k --number_ios=2000")
    >>> [row["drive"] for row in run.rows()]
    ['p4800x-375', 'p3700-1600']
    """
    cores, _ = _drives(drives)
    return _told(Run(_core.run(cores, _jobs(jobs), host, state, seed, every, fault, heat, guests)))


class Replay(_Tabular):
    """Results of a trace replay: a line for each drive and kind of request."""

    def __init__(self, core):
        self._core = core

    def _table(self):
        return self._core.table()

    def _text(self):
        return self._core.text()

    @property
    def stopped(self) -> bool:
        """Whether it was stopped before its end."""
        return self._core.stopped

    def json(self) -> dict[str, _Any]:
        """Output of ``drivelab replay --output-format json``."""
        return _json.loads(self._core.json())

    def plot(self) -> matplotlib.figure.Figure:
        """Latency over percentiles, as a figure of matplotlib's."""
        return _latencies([row for row in self.rows() if row["drive"] != "as recorded"])


def replay(
    trace: _Path_,
    drives: _Drives,
    *,
    host: str = _HOST,
    state: _Start = "auto",
    seed: int = 1,
    speed: float | None = None,
    depth: int | None = None,
    wrap: bool = False,
    format: str | None = None,
    volume: str | None = None,
    first: int | None = None,
    threads: int | None = None,
    fault: _Path_ | None = None,
) -> Replay:
    """Replays a block trace on a drive or several: as recorded, ``speed`` times as fast, or at a queue ``depth``.

    ``wrap`` folds addresses beyond the drive into it; otherwise such a trace is refused. ``fault``: a script of faults, as of `run`.
    """
    cores, _ = _drives(drives)
    core = _core.replay(
        _os.fspath(trace), cores, host, state, seed, speed, depth, wrap, format, volume, first, threads, fault
    )
    return _told(Replay(core))


class Answer(_Tabular):
    """The answer to a question: its first line is the answer."""

    def __init__(self, core):
        self._core = core

    def _table(self):
        return self._core.table()

    def _text(self):
        return self._core.text()

    def __str__(self):
        return "\n".join(self._core.sentences)

    @property
    def meets(self) -> bool:
        """Whether all limits are met: where the program's exit code is 0 and not 3."""
        return self._core.meets

    def __bool__(self):
        return self.meets

    def json(self) -> dict[str, _Any]:
        """What ``--json`` prints."""
        return _json.loads(self._core.json())

    def save(self, path: _Path_) -> _Path:
        """Writes the page; returns its path."""
        return _written(path, self._core.html())


def _written(path, text, force=True):
    path = _Path(path)
    if path.exists() and not force:
        raise InputError(f"{path}: exists already: force=True replaces it")
    path.write_text(text, encoding="utf-8")
    return path


def _around(host, state, seed, seeds):
    return {"host": host, "state": state, "seed": seed, "seeds": seeds}


def _call(name, drives, **options):
    """The call that repeats an answer: with the drives' settings and everything that is not the default."""
    words = [f"[{', '.join(drive._call for drive in drives)}]"]
    words += [f"{key}={_written_as(value)}" for key, value in options.items() if value is not None]
    return f"drivelab.{name}({', '.join(words)})"


def _written_as(value):
    if isinstance(value, Jobs):
        return f"drivelab.{value!r}"
    if isinstance(value, Drive):
        return value._call
    return repr(_os.fspath(value)) if isinstance(value, _os.PathLike) else repr(value)


def _ask(name, drives, **given):
    """The answer to a question; what is ``None`` has its default."""
    given = {key: _as_json(key, value) for key, value in given.items() if value is not None}
    cores, _ = _drives(drives)
    fields = ", ".join(f"{_json.dumps(key)}: {text}" for key, text in given.items())
    return Answer(_core.ask(name, cores, f"{{{fields}}}"))


def _as_json(key, value):
    """A value as JSON, which has no NaN and no infinity."""
    try:
        return _json.dumps(value, default=_plain, allow_nan=False)
    except ValueError:
        raise InputError(f"{key}: {value} is not a finite number") from None


def _plain(value):
    """A number or path of another library."""
    return _os.fspath(value) if isinstance(value, _os.PathLike) else value.item()


_MAX, _MIX, _FILL, _CHECK, _ODDS, _LIFE = (
    _json.loads(_core.defaults(name)) for name in ("max", "mix", "fill", "check", "odds", "life")
)


def max(
    drives: _Drives,
    slo: str,
    *,
    rw: _Rw = _MAX["rw"],
    rwmixread: int = _MAX["rwmixread"],
    bs: str = _MAX["bs"],
    numjobs: int | None = None,
    options: dict[str, object] | None = None,
    ios: int | None = None,
    host: str = _MAX["host"],
    state: _Start = _MAX["state"],
    seed: int = _MAX["seed"],
    seeds: int = _MAX["seeds"],
) -> Answer:
    """The highest load of a drive or several within limits such as "p99<1ms": open loop and closed loop.

    ``options``: further options of fio's jobs, such as ``{"size": "20%"}``.

    >>> import drivelab as dl
    >>> answer = dl.max("p4800x-375", "p99<100us", ios=3000, seeds=1)
    >>> answer.meets
    True
    """
    return _ask(
        "max", drives, slo=slo, rw=rw, rwmixread=rwmixread, bs=bs, numjobs=numjobs, fio=_pairs(options), ios=ios, host=host,
        state=state, seed=seed, seeds=seeds,
    )


def _pairs(options):
    return [(key, str(value)) for key, value in (options or {}).items()]


def mix(
    drives: _Drives,
    *,
    rw: _Mixed = _MIX["rw"],
    step: int = _MIX["step"],
    bs: str = _MIX["bs"],
    iodepth: int = _MIX["iodepth"],
    numjobs: int | None = None,
    options: dict[str, object] | None = None,
    ios: int | None = None,
    host: str = _MIX["host"],
    state: _Start = _MIX["state"],
    seed: int = _MIX["seed"],
    seeds: int = _MIX["seeds"],
) -> Answer:
    """IOPS and latency from reads alone to writes alone, in steps of ``step`` percent, and where drives fall off.

    Each mix runs with ``iodepth`` in flight (closed loop) from the same state. ``rw``, ``bs`` and ``options`` are fio's;
    ``numjobs`` is the most threads.

    >>> import drivelab as dl
    >>> rows = dl.mix("950pro-256", step=50, ios=1000, seeds=1).rows()
    >>> [row["read_percent"] for row in rows], rows[2]["iops"] < rows[0]["iops"]
    ([100, 50, 0], True)
    """
    return _ask(
        "mix", drives, rw=rw, step=step, bs=bs, iodepth=iodepth, numjobs=numjobs, fio=_pairs(options), ios=ios, host=host,
        state=state, seed=seed, seeds=seeds,
    )


def fill(
    drives: _Drives,
    *,
    used: int | _Iterable[int] = tuple(_FILL["used"]),
    random: bool = False,
    bs: str | None = None,
    iodepth: int | None = None,
    host: str = _FILL["host"],
    seed: int = _FILL["seed"],
    seeds: int = _FILL["seeds"],
) -> Answer:
    """How long writes stay fast: GB and seconds until a drive slows down, the rate after it, and how it recovers.

    ``used``: percent of the drive in use at the start. Writes in order (1 MiB, 8 in flight) show the SLC cache of a desktop
    drive; ``random`` ones (4 KiB, 32 in flight) show how long erased blocks last.

    >>> import drivelab as dl
    >>> slows = dl.fill("970evo-500", used=50, seeds=1).json()["answers"][0]["at"][0]
    >>> slows["fast_mb_s"][0] > 3 * slows["falls_off"]["slow_mb_s"][0]
    True
    """
    shares = [used] if isinstance(used, int) else list(used)
    return _ask("fill", drives, used=shares, random=random, bs=bs, iodepth=iodepth, host=host, seed=seed, seeds=seeds)


def odds(
    drives: _Drives,
    *,
    replace_after: str = _ODDS["replace_after"],
    afr: str | _Iterable[str] | dict[str, str] | None = None,
    crashes: float = _ODDS["crashes"],
    years: float | None = _ODDS["years"],
    host: str = _ODDS["host"],
    seed: int = _ODDS["seed"],
) -> Answer:
    """Odds of data loss: how often drives fail, how long a rebuild takes, and how often a pool then loses data.

    ``replace_after``: time until a failed drive is replaced ("0h" with a hot spare). ``afr``: the share of drives that fail in a
    year, of all ("1%"), by drive ({"p4801x-100": "0.2%"}), or both (["1%", "p4801x-100=0.2%"]). ``crashes``: how often the
    machine itself fails in a year. ``years``: also compute the probability of a loss within this number of years.

    >>> import drivelab as dl
    >>> both = dl.odds(["p4801x-100", "mirror(2*p4801x-100)"]).json()["answers"]
    >>> both[1]["losses"][0] < both[0]["losses"][0] / 10_000
    True
    """
    if isinstance(afr, dict):
        rates = [f"{drive}={share}" for drive, share in afr.items()]
    elif isinstance(afr, str):
        rates = [afr]
    else:
        rates = list(afr or ())
    return _ask("odds", drives, replace_after=replace_after, afr=rates, crashes=crashes, years=years, host=host, seed=seed)


def life(
    drives: _Drives,
    load: str | Jobs | None = _LIFE["load"],
    *,
    job: _Path_ | None = _LIFE["job"],
    users: int | None = _LIFE["users"],
    trace: _Path_ | None = _LIFE["trace"],
    rate: str | None = _LIFE["rate"],
    writes: str | None = _LIFE["writes"],
    rw: _Writes = _LIFE["rw"],
    bs: str = _LIFE["bs"],
    years: float = _LIFE["years"],
    runtime: str | None = _LIFE["runtime"],
    host: str = _LIFE["host"],
    state: _Start = _LIFE["state"],
    seed: int = _LIFE["seed"],
    seeds: int = _LIFE["seeds"],
) -> Answer:
    """How long drives last under a load, each member of a pool too.

    The load is one with a name, `fio` jobs, a ``job`` file, a block ``trace``, or ``writes``. These are bytes per second or per
    day ("100MB/s", "2TB/day"), or drive writes per day ("1DWPD"); ``rw`` and ``bs`` give their order and size as in fio.

    ``rate``: total rate of the load, such as "50k" (IOPS) or "300MB/s". ``users``: number of users of a load that defines the
    load of one user, such as "kvcache".

    >>> import drivelab as dl
    >>> dl.life("p4800x-375", "oltp", runtime="50ms", seeds=1).rows()[0]["rated_dwpd"]
    30.0
    >>> lasts = dl.life("950pro-256", writes="1DWPD", runtime="50ms", seeds=1).rows()[0]["years_to_rating"]
    >>> lasts < 5
    True
    """
    return _ask(
        "life", drives, load=_load(load), job=job, trace=trace, users=users, rate=rate, writes=writes, rw=rw, bs=bs, years=years,
        runtime=runtime, host=host, state=state, seed=seed, seeds=seeds,
    )


def _load(asked):
    """A load of a request: a name, or the options and files of jobs."""
    if asked is None or isinstance(asked, str):
        return asked
    if not isinstance(asked, Jobs):
        asked = fio(files=asked) if isinstance(asked, _os.PathLike) else fio(asked)
    return asked._spec


def _one_load(load, trace, writes=None, *, users=None):
    """Returns the requested load: a name, a job, a trace, a profile or a rate of writes."""
    given = [one for one in (load, trace, writes) if one is not None]
    if len(given) > 1:
        raise InputError("give one load: a name or jobs, a trace, or writes")
    if users is not None and not isinstance(load, str):
        raise InputError("users: only loads with a name have users, such as \"kvcache\"")
    if trace is not None:
        return _Path(trace)
    return load if load is None or isinstance(load, str) else _jobs(load)


def in_place(place: _Place, drive: _Path_, behind: str, *, overwrite: bool = False) -> str:
    """The pool in which a drive has a place, as an expression: "slog", "vsan-cache" or "read-cache", before what is behind it.

    The drive "none" is an intent log without a log device: what others are compared with. Clients of a log write new files; with
    ``overwrite`` they overwrite existing ones, and the main pool reads what they overwrite only in part.

    >>> import drivelab as dl
    >>> main = "raidz(6*exos-x18-16tb; parity=2)"
    >>> dl.in_place("slog", "p4801x-100", main)
    'intent-log(main=raidz(6*exos-x18-16tb; parity=2), log=p4801x-100; filled=false)'
    >>> slogs = [dl.in_place("slog", drive, main) for drive in ("none", "p4801x-100")]
    >>> without, optane = dl.choose(slogs, "nfs-sync", runtime="2s", seeds=1).rows()
    """
    return _core.in_place(place, _os.fspath(drive), behind, overwrite)


def choose(
    drives: _Drives,
    load: str | Jobs | None = None,
    *,
    users: int | None = None,
    trace: _Path_ | None = None,
    slo: str | None = None,
    rate: str | None = None,
    writes: str | None = None,
    by: _Optional[_By] = None,
    like: _Path_ | Drive | None = None,
    in_production: bool = False,
    years: float = 5,
    usd: _Path_ | None = None,
    runtime: str | None = None,
    host: str = _HOST,
    state: _Start = "auto",
    seed: int = 1,
    seeds: int = 3,
) -> Answer:
    """Which drives meet a load and limits, and which to take by a measure.

    The load is one with a name, `fio` jobs, or a block ``trace``. ``rate``: all drives are asked for this, "50k" (IOPS) or "300MB/s";
    by default what ``slo`` asks for, else each drive's own maximum ("max"). ``writes``: instead, the rate of its writes, such as
    "600GB/day"; its reads arrive in proportion. ``users``: instead, users of a load that says what one asks
    for ("kvcache", "vector-search", "training-files", "training-shards"); their I/Os arrive at random (open loop). ``by``: usd
    (the default with ``usd``, a file with your prices), p99 (the default for a trace or at a rate), iops (else), watt or years.
    ``like``: which of the others comes nearest to this drive, and what is lost; without a rate, at half of its maximum.
    ``in_production``: leave out drives that are known to be no longer made.

    >>> import drivelab as dl
    >>> answer = dl.choose(["p4800x-375", "950pro-256"], "wal", by="p99", runtime="50ms", seeds=1)
    >>> len(answer.rows())
    2
    >>> chats = dl.choose("p4800x-375", "kvcache", users=20, runtime="50ms", seeds=1)
    >>> chats.json()["asked"]["load"]["offered_iops"]
    42.66
    """
    asked = _one_load(load, trace, users=users)
    if asked is None:
        raise InputError("there is no load to choose for: give the name of one, drivelab.fio(...), or trace=FILE")
    named = _drives(drives)[1]
    wanted = None
    if like is not None:
        this = like if isinstance(like, Drive) else Drive(like)
        wanted = this._name
        if all(drive._name != wanted for drive in named):
            named = [*named, this]
    cores = [drive._core for drive in named]
    call = _call(
        "choose", named, load=load, trace=trace, users=users, slo=slo, rate=rate, writes=writes, by=by, like=wanted,
        in_production=in_production or None, years=years, usd=usd, runtime=runtime, host=host, state=state, seed=seed, seeds=seeds,
    )
    choice: _core._Choice = {
        "by": by, "years": float(years), "usd": usd, "users": users, "rate": rate, "writes": writes, "like": wanted,
        "in_production": in_production,
    }
    return Answer(_core.choose(cores, asked, slo, choice, runtime, _around(host, state, seed, seeds), call))


def explain(
    results: _Path_,
    drive: _Path_ | Drive | None = None,
    *,
    logs: _Path_ | _Iterable[_Path_] = (),
    host: str = _HOST,
    state: _State = "steady",
    seed: int = 1,
    seeds: int = 3,
) -> Answer:
    """Explains a fio run from its JSON: what bound it, how far it is from the drive's rating and why, and what to change.

    Without a ``drive`` it says what the file alone tells. ``logs``: fio's logs of rates over time, of a file with one run.
    """
    named = [] if drive is None else _drives(drive)[1]
    files = [logs] if isinstance(logs, (str, _os.PathLike)) else list(logs)
    words = {"drive": named[0] if named else None, "logs": [_os.fspath(path) for path in files] or None}
    words |= {"host": host, "state": state, "seed": seed, "seeds": seeds}
    said = [f"{key}={_written_as(value)}" for key, value in words.items() if value is not None]
    call = f"drivelab.explain({', '.join([repr(_os.fspath(results)), *said])})"
    core = named[0]._core if named else None
    return Answer(_core.explain(_Path(results), core, files, _around(host, state, seed, seeds), call))


def check(
    software: _Software,
    drives: _Drives,
    *,
    host: str | None = None,
    state: _State = _CHECK["state"],
    seed: int = _CHECK["seed"],
    seeds: int = _CHECK["seeds"],
) -> Answer:
    """Whether drives meet the minimum that a piece of software publishes.

    >>> import drivelab as dl
    >>> dl.check("etcd", "p4800x-375", seeds=1).meets
    True
    """
    return _ask("check", drives, software=software, host=host, state=state, seed=seed, seeds=seeds)


def size(
    place: _Sized,
    drives: _Path_ | _Iterable[_Path_],
    behind: str,
    load: str | Jobs | None = None,
    *,
    trace: _Path_ | None = None,
    inbound: str | None = None,
    slo: str | None = None,
    runtime: str | None = None,
    overwrite: bool = False,
    host: str = _HOST,
    state: _Start = "auto",
    seed: int = 1,
    seeds: int = 3,
) -> Answer:
    """How large the log ("slog") or the read cache of a pool should be: by the rule, and simulated at several sizes.

    ``drives`` are tried in that place, before the pool ``behind``. A log is sized by a load (a name, or `fio` jobs) or a ``trace``, a
    read cache by a ``trace``. ``inbound``: most that comes in, for the rule, such as "800MB/s". ``overwrite``: the load of a log
    overwrites existing files, and does not write new ones. Write buffers of vSAN are sized by
    the program (``drivelab size vsan-cache``).
    """
    if place not in ("slog", "read-cache"):
        raise InputError(f"place: {place!r} is not sized here: slog or read-cache (the program sizes vsan-cache)")
    several = [drives] if isinstance(drives, (str, _os.PathLike)) else list(drives)
    names = [_os.fspath(name) for name in several]
    if not names:
        raise InputError("no drive is named: drivelab.drives() lists them")
    asked = _one_load(load, trace)
    if asked is None:
        raise InputError("there is no load: the name of one, drivelab.fio(...), or trace=FILE")
    pools = [Drive(in_place(place, name, behind, overwrite=overwrite)) for name in names]
    words: dict[str, object] = {"load": load, "trace": trace, "inbound": inbound, "slo": slo, "runtime": runtime}
    words |= {"overwrite": overwrite or None, "host": host, "state": state, "seed": seed, "seeds": seeds}
    said = [f"{key}={_written_as(value)}" for key, value in words.items() if value is not None]
    call = f"drivelab.size({', '.join([repr(place), repr(names), repr(behind), *said])})"
    cores = [pool._core for pool in pools]
    around = _around(host, state, seed, seeds)
    return Answer(_core.size(place, names, cores, asked, slo, inbound, runtime, around, call))


class Proof:
    """The results of the faults that pools were tried under."""

    def __init__(self, core):
        self._core = core

    @property
    def holds(self) -> bool:
        """Whether all durability guarantees are kept, and none is more modest than it must be: where the program's exit code is 0 and not 3."""
        return self._core.holds

    def __bool__(self):
        return self.holds

    def rows(self) -> list[dict[str, _Any]]:
        """A dictionary for each pool and fault: pool, fault, verdict, points."""
        return self._core.rows()

    def __repr__(self):
        return self._core.text()

    def _repr_html_(self):
        return f"<pre>{_html.escape(self._core.text())}</pre>"


def prove(pools: _Drives, *, points: int = 10_000, fault: str = "", seed: int = 1) -> Proof:
    """Tries whether pools keep their durability guarantees: power cuts at every moment, dead members, faults (``docs/prove.md``).

    ``points``: power cuts for each fault, at least. ``fault``: only faults with these words.

    >>> import drivelab as dl
    >>> proof = dl.prove("mirror(2*950pro-256)", points=200, fault="power cut")
    >>> proof.holds, len(proof.rows()) > 0
    (True, True)
    """
    cores, _ = _drives(pools)
    return Proof(_core.prove(cores, int(points), fault, seed))


class Act(_Tabular):
    """Results of Aerospike's test (ACT): a line for each drive and kind of request, of the run at the load or at the score."""

    def __init__(self, core):
        self._core = core

    def _table(self):
        return self._core.table()

    def _text(self):
        return self._core.text()

    @property
    def passes(self) -> bool:
        """Whether all drives passed the given load; true if no load was given and the score was searched."""
        return self._core.passes

    def __bool__(self):
        return self.passes

    def scores(self) -> dict[str, int | None]:
        """The score of each drive: the highest whole multiple of 1x that passes; ``None`` where a load was given."""
        return {drive["drive"]: drive["score"] for drive in self.json()["drives"]}

    def json(self) -> dict[str, _Any]:
        """Output of ``drivelab act --output-format json``."""
        return _json.loads(self._core.json())

    def log(self) -> str:
        """The run of the first drive as a log that ACT's ``act_latency.py`` reads."""
        return self._core.log()


def act(
    drives: _Drives,
    *,
    load: float | None = None,
    config: _Path_ | None = None,
    version: int | None = None,
    queues: int | None = None,
    threads_per_queue: int | None = None,
    service_threads: int | None = None,
    duration: int | None = None,
    warm_up: int = 2,
    slice: int = 3600,
    latency_only: bool = False,
    host: str = _core.ACT_HOST,
    cores: int | None = None,
    state: _State = "steady",
    seed: int = 1,
) -> Act:
    """Aerospike's certification test (``docs/act.md``): the highest load each drive passes, or one load or configuration file.

    ``version``: 3 (``queues``, ``threads_per_queue``) or 6 (``service_threads``). ``duration``, ``warm_up`` and ``slice`` are
    seconds.

    >>> import drivelab as dl
    >>> tested = dl.act("p4800x-375", load=10, duration=1, warm_up=0)
    >>> tested.passes, tested.rows()[0]["what"]
    (True, 'read')
    """
    cores_of_drives, _ = _drives(drives)
    options: _core._Act = {
        "load": load,
        "config": config,
        "version": version,
        "queues": queues,
        "threads_per_queue": threads_per_queue,
        "service_threads": service_threads,
        "duration": duration,
        "warm_up": warm_up,
        "slice": slice,
        "latency_only": latency_only,
        "cores": cores,
    }
    return Act(_core.act(cores_of_drives, options, host, state, seed))


class Fit(_Tabular):
    """Model fitted to a measured drive: measured and simulated figures, and the drive's file."""

    def __init__(self, core):
        self._core = core

    def _table(self):
        return self._core.table()

    def _text(self):
        return self._core.text()

    @property
    def toml(self) -> str:
        """The drive's file."""
        return self._core.toml

    def save(self, path: _Path_, force: bool = False) -> _Path:
        """Writes the drive's file, for ``Drive(path)``, and returns its path. An existing file is kept unless ``force``."""
        return _written(path, self.toml, force)


def fit(
    base: _Path_ | Drive,
    measured: _Path_ | _Iterable[_Path_],
    *,
    host: str = _HOST,
    state: _State = "steady",
    free: _Iterable[str] = (),
    hold_out: int = 4,
    iterations: int = 120,
    name: str = "mine",
) -> Fit:
    """Fits the parameters of a drive that is built alike to results of fio's (files of ``--output-format=json``).

    Every ``hold_out``-th run is left out of the fit and judges it.
    """
    cores, _ = _drives(base)
    files = [measured] if isinstance(measured, (str, _os.PathLike)) else list(measured)
    return Fit(_core.fit(cores[0], files, host, state, list(free), hold_out, iterations, name))


class Review(_Tabular):
    """Drives side by side: a line for each drive, point and direction, and a page."""

    def __init__(self, core):
        self._core = core

    def _table(self):
        return self._core.table()

    def _text(self):
        return "\n".join(self.verdict)

    @property
    def verdict(self) -> list[str]:
        """Conclusions, one sentence each."""
        return self._core.verdict

    def json(self) -> dict[str, _Any]:
        """The data of the page."""
        return _json.loads(self._core.json())

    def html(self) -> str:
        """The page."""
        return self._core.html()

    def save(self, path: _Path_) -> _Path:
        """Writes the page; gives its path."""
        return _written(path, self._core.html())


def review(
    drives: _Drives,
    *,
    suite: _Suite = "quick",
    host: str | None = None,
    ios: int | None = None,
    seed: int = 1,
    jobs: Jobs | _Path_ | None = None,
) -> Review:
    """Puts drives side by side as the program's reviews do; minutes, unless ``ios`` shortens each run."""
    cores, _ = _drives(drives)
    return Review(_core.review(cores, suite, host, ios, seed, None if jobs is None else _jobs(jobs)))


class Sweep:
    """A sweep that is done: its rows are in a Parquet file."""

    def __init__(self, path: _Path, scenarios: int, problems: tuple[int, str | None]) -> None:
        self.path, self.scenarios = path, scenarios
        self.problems, self.first_problem = problems

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self):
        wrong = f", {self.problems} could not be run: {self.first_problem}" if self.problems else ""
        return f"Sweep of {self.scenarios} scenarios in {self.path}{wrong}"

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a `pandas.DataFrame`."""
        import pandas

        return pandas.read_parquet(self.path)

    def to_polars(self) -> polars.DataFrame:
        """The rows as a `polars.DataFrame`."""
        import polars

        return polars.read_parquet(self.path)


_sweeps: dict[tuple[str, str], _core.Sweep] = {}


def _part(origin: str, text: str, folder: str, part: int) -> bytes:
    """Runs a part of a sweep in this process, which keeps the sweep and the states of its drives for the next part."""
    key = (text, folder)
    if key not in _sweeps:
        _sweeps.clear()
        _sweeps[key] = _core.Sweep(origin, text, folder)
    return bytes(_sweeps[key].part(part))


def _placed(missing, workers):
    """A worker for each part, the same for parts that begin in one state; none where there are fewer states than workers."""
    states = {beginning: None for _, beginning in missing}
    if not workers or len(states) < len(workers):
        return {}
    of = {beginning: workers[place * len(workers) // len(states)] for place, beginning in enumerate(states)}
    return {part: of[beginning] for part, beginning in missing}


def _by_dask(client, asked, missing):
    """Parts as they are done; those that begin in one state are offered to one worker, which others may relieve."""
    from distributed import as_completed

    worker = _placed(missing, sorted(client.scheduler_info(n_workers=-1)["workers"]))
    name = f"drivelab-part-{_uuid.uuid4().hex}"
    parts = {}
    for part, _ in missing:
        offered = {"workers": [worker[part]], "allow_other_workers": True} if worker else {}
        future = client.submit(_part, *asked, part, key=(name, part), pure=False, retries=5, **offered)
        parts[future] = part
    try:
        # Results are asked for one by one: those of a worker that died are run again.
        for future in as_completed(parts):
            yield parts[future], future.result()
            future.release()
    finally:
        client.cancel(list(parts))


def _by_executor(executor, asked, missing):
    from concurrent.futures import as_completed

    parts = {executor.submit(_part, *asked, part): part for part, _ in missing}
    for future in as_completed(parts):
        yield parts[future], future.result()


def _by_joblib(parallel, asked, missing):
    from joblib import delayed

    files = parallel(delayed(_part)(*asked, part) for part, _ in missing)
    yield from zip((part for part, _ in missing), files)


def sweep(
    path: _Path_,
    output: _Path_ | None = None,
    *,
    client: object | None = None,
    threads: int | None = None,
) -> Sweep:
    """Runs a sweep (``docs/sweep.md``): scenarios by the thousand into a Parquet file.

    ``output``: the file, by default the sweep's name with ``.parquet`` in the current folder. ``client``: runs the parts of the
    sweep, a hundred scenarios each: a client of Dask distributed, an executor of `concurrent.futures`, or a `joblib.Parallel`.
    Without ``client``, the sweep uses all cores of this machine, or ``threads`` of them. Workers must have the same version of
    drivelab, and access to the files that the sweep names under the same paths. The bytes of the file do not depend on
    ``client`` or ``threads``. If the sweep is interrupted, the same call continues it.
    """
    path = _Path(path)
    output = _Path(path.with_suffix(".parquet").name if output is None else output)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    asked = (str(path), text, str(path.resolve().parent))
    core = _core.Sweep(*asked)
    for warning in core.warnings:
        _warnings.warn(warning, stacklevel=2)
    if client is None:
        core.run(output, threads)
    else:
        missing = core.missing(output)
        if hasattr(client, "scheduler_info"):
            done = _by_dask(client, asked, missing)
        elif hasattr(client, "submit"):
            done = _by_executor(client, asked, missing)
        else:
            done = _by_joblib(client, asked, missing)
        for part, file in done:
            core.keep(output, part, file)
    return Sweep(output, core.scenarios, core.finish(output))
