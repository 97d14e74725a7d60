"""Checks images as check.py does, one for each line of the input: for `--check-server`."""

import sqlite3
import sys


def check(folder, tokens):
    try:
        db = sqlite3.connect(folder + "/orders.db")
        try:
            state = db.execute("PRAGMA integrity_check").fetchone()[0]
            found = {str(row[0]) for row in db.execute("SELECT id FROM orders")} if tokens else set()
        finally:
            db.close()
    except sqlite3.Error as error:
        return f"unopenable: {error}"
    if state != "ok":
        return f"corrupt: {state}"
    lost = [token for token in tokens if token not in found]
    return f"lost {lost[0]}" if lost else "ok"


for line in sys.stdin:
    path, acks, tries, name = line.rstrip("\n").split("\t")
    print(check(path, open(acks).read().split()), flush=True)
