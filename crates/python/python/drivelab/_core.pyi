"""Types of the compiled part."""

from os import PathLike
from typing import Any, TypedDict, final

from typing_extensions import Self

__version__: str
ACT_HOST: str
TYPICAL_HOST: str

class Error(Exception): ...
class InputError(Error): ...
class Defect(Error): ...

@final
class Table:
    column_names: list[str]
    def rows(self) -> list[dict[str, Any]]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class _Around(TypedDict):
    host: str
    state: str
    seed: int
    seeds: int

@final
class Drive:
    def __new__(
        cls,
        name: str,
        options: list[tuple[str, str]] = ...,
        volume: str | None = None,
    ) -> Self: ...
    def set(self, key: str, value: str) -> Drive: ...
    @property
    def id(self) -> str: ...
    def json(self, figures: bool) -> str: ...
    def text(self) -> str: ...
    def words(self) -> list[str]: ...

@final
class Jobs:
    def __new__(cls, options: list[str], files: list[str | PathLike[str]], sections: list[str]) -> Self: ...
    def warnings(self) -> list[str]: ...
    def names(self) -> list[str]: ...

@final
class Sweep:
    scenarios: int
    warnings: list[str]
    definition: str
    def __new__(cls, origin: str, text: str, folder: str | PathLike[str]) -> Self: ...
    def command(self, index: int) -> str: ...
    def missing(self, output: str | PathLike[str]) -> list[tuple[int, tuple[int, int]]]: ...
    def run(self, output: str | PathLike[str], threads: int | None) -> int: ...
    def part(self, part: int) -> list[int] | bytes: ...
    def keep(self, output: str | PathLike[str], part: int, file: bytes) -> None: ...
    def finish(self, output: str | PathLike[str]) -> tuple[int, str | None]: ...

@final
class Run:
    stopped: bool
    warnings: list[str]
    def text(self, format: str) -> str: ...
    def table(self) -> Table: ...
    def over_time(self) -> Table: ...

@final
class Replay:
    stopped: bool
    def text(self) -> str: ...
    def json(self) -> str: ...
    def table(self) -> Table: ...

@final
class Answer:
    sentences: list[str]
    meets: bool
    def text(self) -> str: ...
    def json(self) -> str: ...
    def html(self) -> str: ...
    def table(self) -> Table: ...

@final
class Proof:
    holds: bool
    def text(self) -> str: ...
    def rows(self) -> list[dict[str, Any]]: ...

class _Choice(TypedDict):
    by: str | None
    years: float
    usd: str | PathLike[str] | None
    users: int | None
    rate: str | None
    writes: str | None
    like: str | None
    in_production: bool

class _Act(TypedDict):
    load: float | None
    config: str | PathLike[str] | None
    version: int | None
    queues: int | None
    threads_per_queue: int | None
    service_threads: int | None
    duration: int | None
    warm_up: int
    slice: int
    latency_only: bool
    cores: int | None

@final
class Act:
    passes: bool
    def text(self) -> str: ...
    def json(self) -> str: ...
    def log(self) -> str: ...
    def table(self) -> Table: ...

@final
class Fit:
    toml: str
    def text(self) -> str: ...
    def table(self) -> Table: ...

@final
class Review:
    verdict: list[str]
    def html(self) -> str: ...
    def json(self) -> str: ...
    def table(self) -> Table: ...

def names(kind: str) -> list[str]: ...
def run(
    drives: list[Drive],
    jobs: Jobs,
    host: str,
    state: str,
    seed: int,
    every: str | None,
    fault: str | PathLike[str] | None,
    heat: bool,
    guests: int | None,
) -> Run: ...
def replay(
    trace: str,
    drives: list[Drive],
    host: str,
    state: str,
    seed: int,
    speed: float | None,
    depth: int | None,
    wrap: bool,
    format: str | None,
    volume: str | None,
    first: int | None,
    threads: int | None,
    fault: str | PathLike[str] | None,
) -> Replay: ...
def in_place(place: str, drive: str, behind: str, overwrite: bool) -> str: ...
def act(drives: list[Drive], options: _Act, host: str, state: str, seed: int) -> Act: ...
def defaults(name: str) -> str: ...
def ask(name: str, drives: list[Drive], fields: str) -> Answer: ...
def _repeated(name: str, drives: list[Drive], fields: str) -> tuple[str, str]: ...
def choose(
    drives: list[Drive],
    load: str | Jobs | PathLike[str],
    slo: str | None,
    choice: _Choice,
    runtime: str | None,
    around: _Around,
    repeats: str,
) -> Answer: ...
def explain(
    results: str | PathLike[str],
    drive: Drive | None,
    logs: list[str | PathLike[str]],
    around: _Around,
    repeats: str,
) -> Answer: ...
def size(
    place: str,
    drives: list[str],
    pools: list[Drive],
    load: str | Jobs | PathLike[str],
    slo: str | None,
    inbound: str | None,
    runtime: str | None,
    around: _Around,
    repeats: str,
) -> Answer: ...
def prove(pools: list[Drive], points: int, fault: str, seed: int) -> Proof: ...
def fit(
    base: Drive,
    measured: list[str | PathLike[str]],
    host: str,
    state: str,
    free: list[str],
    hold_out: int,
    iterations: int,
    name: str,
) -> Fit: ...
def review(
    drives: list[Drive], suite: str, host: str | None, ios: int | None, seed: int, jobs: Jobs | None
) -> Review: ...
def _broken_off(words: str) -> None: ...
