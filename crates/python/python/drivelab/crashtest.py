"""Crash tests: does a program survive a power cut on a drive?

    >>> import drivelab as dl
    >>> run = dl.crashtest.record("950pro-256", ["python3", "orders.py"])    # doctest: +SKIP
    >>> run.check("python3 check.py", budget=60).held                          # doctest: +SKIP
    True

`record` runs a program once on a simulated drive, as ``drivelab crashtest`` does, and `Recording.check` judges every image
that a power cut can leave. The judge is a command, or a function of an `Image` in this process. ``docs/crashtest.md`` is the
tutorial.

The functions run the program ``drivelab``: that of the variable ``DRIVELAB``, or the one in the path.
"""

from __future__ import annotations

import json as _json
import os as _os
import shlex as _shlex
import shutil as _shutil
import signal as _signal
import socket as _socket
import subprocess as _subprocess
import sys as _sys
import tempfile as _tempfile
import threading as _threading
from collections.abc import Callable as _Callable, Sequence as _Sequence
from pathlib import Path as _Path
from typing import Any as _Any, Literal as _Literal, Optional as _Optional, Union as _Union

from ._core import Error, InputError

__all__ = ["CheckResult", "Image", "Recording", "Violation", "load", "record"]

_PathName = _Union[str, "_os.PathLike[str]"]
_Command = _Union[str, _Sequence[str]]
_Time = _Union[int, float, str]

# Passes lines between the program and this process. The program starts one for each worker.
_RELAY = """\
import socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
both = line.makefile("rw", encoding="utf-8", errors="surrogateescape")
for order in sys.stdin:
    both.write(order)
    both.flush()
    sys.stdout.write(both.readline() or "crashed: the test has ended\\n")
    sys.stdout.flush()
"""


class Violation(Exception):
    """A rule that an image violates. A check function raises it, or returns its text.

    The first word of the text is the class: ``lost 57``, ``corrupt: page 3``, ``unopenable: no header``, ``skip``. Other texts
    violate another rule.
    """


class Image:
    """An image that a power cut leaves, for a check function. The function may change the image."""

    def __init__(self, path: str, acks: str, tries: str, name: str) -> None:
        #: Raw file with the contents of the drive.
        self.path = path
        #: Name of the image, such as ``171-2``.
        self.name = name
        #: Tokens that were acknowledged before the power cut.
        self.acks: list[str] = _Path(acks).read_text().split("\n")[:-1]
        #: Tokens that were begun before the power cut.
        self.tries: list[str] = _Path(tries).read_text().split("\n")[:-1]
        self._files: _Optional[_tempfile.TemporaryDirectory[str]] = None

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the drive."""
        with open(self.path, "rb") as file:
            return _os.pread(file.fileno(), length, offset)

    @property
    def folder(self) -> str:
        """A copy of the files of an ext4, in a temporary folder: ``e2fsck`` replays the journal, and ``debugfs`` copies.

        An image that ``e2fsck`` cannot repair raises a `Violation`. Other file systems need a command as the check.
        """
        if self._files is None:
            files = _tempfile.TemporaryDirectory(prefix="drivelab-image-")
            replay = _tool("e2fsck", "-E", "journal_only", "-y", self.path)
            if replay.returncode >= 4:
                raise Violation(f"unopenable: e2fsck: {_last_line(replay.stdout + replay.stderr)}")
            copy = _tool("debugfs", "-R", f'rdump / "{files.name}"', self.path)
            if copy.returncode != 0:
                raise Violation(f"unopenable: debugfs: {_last_line(copy.stderr)}")
            self._files = files
        return self._files.name

    def _close(self) -> None:
        if self._files is not None:
            self._files.cleanup()


class CheckResult:
    """Result of the checks of all images."""

    def __init__(self, text: str, again: _Callable[[str], str]) -> None:
        self._text = text
        self._json = _json.loads(text)
        self._again = again

    @property
    def held(self) -> bool:
        """Whether no image has failed, not even once."""
        return bool(self._json["held"])

    @property
    def failures(self) -> list[dict[str, _Any]]:
        """Reduced failures: ``class``, ``line``, ``image``, ``needs``, ``possible_on`` and others."""
        return list(self._json["failures"])

    def json(self) -> str:
        """The result as the program prints it."""
        return self._text

    def __getitem__(self, key: str) -> _Any:
        return self._json[key]

    def __bool__(self) -> bool:
        return self.held

    def __repr__(self) -> str:
        if self.held:
            stopped = "; the search was stopped" if self["stopped"] else ""
            return f"held: no image of {self['tried']} fails{stopped}"
        count = self["flaky_count"]
        lines = [f"{count} failures did not repeat: {', '.join(self['flaky'])}"] if count else []
        for failure in self.failures:
            lines.append(f"FAILED {failure['line']} ({failure['images']} images); needs {failure['needs']}")
            lines.append(f"  image {failure['image']}: possible on {len(failure['possible_on'])} drives")
            lines.append(f"  again: {self._again(failure['image'])}")
        return "\n".join(lines)


class Recording:
    """The writes of a program, from which images are made."""

    def __init__(self, log: _PathName, folder: _Optional[_tempfile.TemporaryDirectory[str]] = None) -> None:
        #: Path of the log, for ``drivelab crashtest --from``.
        self.log = _os.fspath(log)
        self._folder = folder

    def save(self, path: _PathName) -> Recording:
        """Copies the log to a file that does not exist yet. A recording without a saved log ends with its object."""
        if _os.path.exists(path):
            raise InputError(f"{_os.fspath(path)}: the file exists: name one that does not exist")
        _shutil.copyfile(self.log, path)
        return Recording(path)

    def check(
        self,
        check: _Union[_Command, _Callable[[Image], _Any]],
        *,
        budget: _Time = 60,
        images: _Optional[int] = None,
        limit: _Time = 10,
        drive: _Optional[str] = None,
        torn: _Optional[_Literal["part", "512", "no"]] = None,
        flush: _Optional[_Literal["honest", "lies"]] = None,
        seed: int = 1,
        junit: _Optional[_PathName] = None,
        html: _Optional[_PathName] = None,
    ) -> CheckResult:
        """Judges all images that a power cut can leave on the drive.

        ``check`` is a command, as ``--check`` of the program, or a function of an `Image`. A function that returns ``None``
        or ``True`` accepts the image. It rejects an image by a text or a `Violation`, or by ``False`` or an `AssertionError`. Any
        other exception means that the program does not open the image. Functions run in threads of this process, one for each
        worker, and get the raw image or, on ext4, a copy of its files (`Image.folder`).

        ``budget`` and ``limit`` are seconds, or texts such as ``"10min"``: the longest time of all checks and of one.
        """
        options = _options(
            budget=_time(budget), images=images, limit=_time(limit), drive=drive, torn=torn, flush=flush, seed=seed, junit=junit, html=html
        )
        text = self._run(check, [*options, "--json"])
        given = {"drive": drive, "torn": torn, "flush": flush}

        def again(image: str) -> str:
            if callable(check):
                named = [f", {key}={value!r}" for key, value in given.items() if value is not None]
                name = getattr(check, "__name__", "check")
                # A lambda has no name that can be written.
                name = name if name.isidentifier() else "check"
                return f"drivelab.crashtest.load({self.log!r}).replay({image!r}, {name}{''.join(named)})"
            words = ["drivelab", "crashtest", "--from", self.log, *_options(**given), "--image", image, "--check"]
            return _shlex.join([*words, _joined(check)])

        return CheckResult(text, again)

    def replay(
        self,
        image: str,
        check: _Union[_Command, _Callable[[Image], _Any]],
        *,
        limit: _Time = 10,
        drive: _Optional[str] = None,
        torn: _Optional[_Literal["part", "512", "no"]] = None,
        flush: _Optional[_Literal["honest", "lies"]] = None,
    ) -> str:
        """Judges one image, by its name. Returns the program's text, whose last line is the judgement."""
        options = _options(image=image, limit=_time(limit), drive=drive, torn=torn, flush=flush)
        return self._run(check, options)

    def keep(self, image: str, path: _PathName) -> None:
        """Writes an image as a raw file, which must not exist yet."""
        _drivelab(["--from", self.log, "--image", image, "--keep", _os.fspath(path)])

    def _run(self, check: _Union[_Command, _Callable[[Image], _Any]], options: list[str]) -> str:
        arguments = ["--from", self.log, *options]
        if not callable(check):
            return _drivelab([*arguments, "--check", _joined(check)])
        judge = _Judge(check)
        with judge as server:
            try:
                return _drivelab([*arguments, "--fs", "none", "--check-server", server])
            except InputError as error:
                said = str(error)
        name = f"the check function {getattr(check, '__name__', repr(check))}"
        _, unjudged, counts = said.partition(_UNJUDGED)
        if unjudged:
            counts = counts.splitlines()[0].replace("exit code 77", "`skip`")
            raise InputError(f"{name} {unjudged}{counts}\n  help: the function must judge at least the image of the orderly end")
        _, at_end, reason = said.partition(_AT_END)
        if not at_end:
            raise InputError(said)
        reason = reason.splitlines()[0].removeprefix(": ")
        raise InputError(
            f"{name} fails {at_end}: {reason}\n  help: the function must accept this image, which lacks nothing: correct it, or record again"
        ) from judge.errors.get(reason)


def record(
    drive: str,
    argv: _Sequence[str],
    *,
    fs: _Optional[_Literal["ext4", "xfs", "none"]] = None,
    size: _Optional[_Union[int, str]] = None,
    mount: _Optional[str] = None,
    writeback: _Optional[_Literal["lazy", "eager"]] = None,
    before: _Optional[str] = None,
    user: _Optional[str] = None,
    guest_kernel: _Optional[_PathName] = None,
    log: _Optional[_PathName] = None,
    seed: int = 1,
) -> Recording:
    """Runs a program once on a drive, and records its writes.

    The options are those of ``drivelab crashtest``. Without ``log``, the log is deleted with the returned object.
    """
    if isinstance(argv, str):
        raise InputError(f"argv is a text: must be a list of words, such as {_shlex.split(argv)}")
    folder = None if log is not None else _tempfile.TemporaryDirectory(prefix="drivelab-recording-")
    path = _os.fspath(log) if log is not None else _os.path.join(folder.name if folder else "", "run.dlog")
    options = _options(
        fs=fs,
        size=size,
        mount=mount,
        writeback=writeback,
        before=before,
        user=user,
        guest_kernel=guest_kernel,
        seed=seed,
        keep_log=path,
    )
    _drivelab([_os.fspath(drive), *options, "--", *argv])
    return Recording(path, folder)


def load(log: _PathName) -> Recording:
    """A log that ``drivelab serve --record`` or `Recording.save` has written."""
    return Recording(log)


def _options(**options: _Any) -> list[str]:
    given = [(key, value) for key, value in options.items() if value is not None]
    return [word for key, value in given for word in ("--" + key.replace("_", "-"), str(value))]


def _time(time: _Time) -> str:
    return time if isinstance(time, str) else f"{round(time * 1e6)}us"


def _joined(command: _Any) -> str:
    return command if isinstance(command, str) else _shlex.join(command)


def _tool(*words: str) -> _subprocess.CompletedProcess[str]:
    path = f"{_os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    program = _shutil.which(words[0], path=path)
    if program is None:
        raise Error(f"{words[0]} is missing: install e2fsprogs, or check with a command in a guest")
    return _subprocess.run([program, *words[1:]], capture_output=True, text=True, errors="replace")


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


def _drivelab(arguments: list[str]) -> str:
    """Runs the program; returns its output if no image fails, or an image."""
    program = _os.environ.get("DRIVELAB") or _shutil.which("drivelab")
    if program is None:
        raise Error("the program drivelab is missing: put it into the path, or name it in the variable DRIVELAB")
    done = _subprocess.run([program, "crashtest", *arguments], capture_output=True, text=True, errors="surrogateescape")
    if done.returncode in (0, 3):
        return done.stdout
    if done.returncode in (130, -_signal.SIGINT):
        raise KeyboardInterrupt
    raise (InputError if done.returncode == 2 else Error)(done.stderr.strip() or done.stdout.strip())


def _rejection(text: str) -> str:
    """Returns the answer that rejects an image with this text, which may begin with ``ok``."""
    text = " ".join(text.split())
    if text.replace(":", " ").split(" ")[0] in ("lost", "corrupt", "unopenable", "fsck", "skip", "rule"):
        return text
    return f"rule: {text}" if text else "rule"


def _words(error: Exception) -> str:
    """Returns the answer that rejects an image for this exception of the check."""
    if isinstance(error, Violation):
        return _rejection(str(error))
    if isinstance(error, AssertionError):
        return f"rule: {error}" if str(error) else "rule: an assertion fails"
    return f"unopenable: {type(error).__name__}: {error}"


#: The program's words for an image that the check must accept.
_AT_END = "on the image of the orderly end, with all that was written"
#: Its words for a check that accepts and rejects nothing.
_UNJUDGED = "has judged no image"


class _Judge:
    """Calls a function for each image that the program asks about."""

    def __init__(self, check: _Callable[[Image], _Any]) -> None:
        self._check = check
        #: Exceptions of the first answers.
        self.errors: dict[str, BaseException] = {}

    def __enter__(self) -> str:
        self._folder = _tempfile.TemporaryDirectory(prefix="drivelab-judge-")
        path = _os.path.join(self._folder.name, "socket")
        self._socket = _socket.socket(_socket.AF_UNIX)
        self._socket.bind(path)
        self._socket.listen()
        _threading.Thread(target=self._accept, daemon=True).start()
        return _shlex.join([_sys.executable, "-S", "-E", "-c", _RELAY, path])

    def __exit__(self, *_: object) -> None:
        # Wakes `accept`, which `close` alone does not.
        self._socket.shutdown(_socket.SHUT_RDWR)
        self._socket.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._socket.accept()
            except OSError:
                return
            _threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: _socket.socket) -> None:
        with line, line.makefile("rw", encoding="utf-8", errors="surrogateescape") as both:
            for order in both:
                image = Image(*order.rstrip("\n").split("\t"))
                try:
                    both.write(self._answer(image) + "\n")
                    both.flush()
                except OSError:
                    return
                finally:
                    image._close()

    def _answer(self, image: Image) -> str:
        """The judgement in one line, whose exception is kept."""
        try:
            return " ".join(self._judge(image).split())
        except Exception as error:
            answer = " ".join(_words(error).split())
            # The image of the orderly end is among the first; each exception keeps the variables of its frames.
            if len(self.errors) < 8:
                self.errors[answer] = error
            return answer

    def _judge(self, image: Image) -> str:
        found = self._check(image)
        if found is None or found is True:
            return "ok"
        return "rule: the check returns False" if found is False else _rejection(str(found))
