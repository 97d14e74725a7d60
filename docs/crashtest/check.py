"""Checks an image: the database must be intact, and every acknowledged order must be in it."""

import os
import sqlite3
import sys


def fail(code, *words):
    print(*words)
    sys.exit(code)


tokens = open(os.environ["DRIVELAB_ACKS"]).read().split()
try:
    db = sqlite3.connect(os.environ["DRIVELAB_DIR"] + "/orders.db")
    state = db.execute("PRAGMA integrity_check").fetchone()[0]
    found = {str(row[0]) for row in db.execute("SELECT id FROM orders")} if tokens else set()
except sqlite3.Error as error:
    fail(12, "unopenable:", error)
if state != "ok":
    fail(11, "corrupt:", state)
for token in tokens:
    if token not in found:
        fail(10, "lost", token)
