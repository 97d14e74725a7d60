"""A Redis server that this process starts on the files of a folder, with every write synchronized."""

import os
import socket
import subprocess
import time

SOCKET = "/tmp/redis.sock"


class Failed(Exception):
    pass


class Server:
    def __init__(self, fsync, folder):
        if os.path.exists(SOCKET):
            os.remove(SOCKET)
        program = os.environ.get("REDIS_SERVER", "redis-server")
        settings = {
            "port": "0",
            "unixsocket": SOCKET,
            "dir": folder,
            "save": "",
            "appendonly": "yes",
            "appendfsync": fsync,
            "auto-aof-rewrite-percentage": "0",
        }
        args = [word for key, value in settings.items() for word in ("--" + key, value)]
        self.output = open("/tmp/redis.log", "w+b")
        self.process = subprocess.Popen([program] + args, stdout=self.output, stderr=self.output)
        self.stream = None
        for _ in range(1000):
            if self.process.poll() is not None:
                self.output.seek(0)
                lines = [line for line in self.output.read().decode().splitlines() if line.strip()]
                raise Failed(lines[-1][-120:] if lines else "no output")
            try:
                self.stream = socket.socket(socket.AF_UNIX)
                self.stream.connect(SOCKET)
                break
            except OSError:
                time.sleep(0.01)
        self.file = self.stream.makefile("rb")
        while b"LOADING" in self.send(b"PING"):
            time.sleep(0.01)

    def send(self, *words):
        text = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self.stream.sendall(text)
        return self.answer()

    def answer(self):
        line = self.file.readline().rstrip(b"\r\n")
        if line[:1] == b"*":
            return [self.answer() for _ in range(int(line[1:]))]
        if line[:1] == b"$":
            return self.file.read(int(line[1:]) + 2)[:-2]
        return line

    def call(self, *words):
        answer = self.send(*words)
        if answer[:1] == b"-":
            raise Failed(answer.decode())
        return answer

    def rewrite(self):
        """Rewrites the log, and waits for the end."""
        self.call(b"BGREWRITEAOF")
        while b"aof_rewrite_in_progress:1" in self.call(b"INFO", b"persistence"):
            time.sleep(0.01)

    def end(self):
        self.stream.close()
        self.process.terminate()
        self.process.wait()
