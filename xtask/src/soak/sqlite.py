"""Client of the soak, inside a guest: SQLite transactions, each acknowledged once it has committed.

sqlite.py DATABASE LEAST check|work. LEAST is the last commit acknowledged, or `new`. Lines on standard output as those of
records.py. A transaction inserts a row and updates a counter and a sum, so that half of one would show.
"""
import hashlib, sqlite3, sys

path, least, what = sys.argv[1:]

def say(*words):
    print(*words, flush=True)

def pad(id_):
    return hashlib.md5(str(id_).encode()).hexdigest() * (1 + id_ % 40)

db = sqlite3.connect(path, isolation_level=None)
# With `full` the removal of the rollback journal, which is the commit, is not synced.
db.execute("pragma synchronous = extra")
try:
    if least == "new":
        db.execute("pragma journal_mode = wal" if sys.argv[1].endswith("wal") else "pragma journal_mode = delete")
        db.execute("begin")
        db.execute("create table acks (id integer primary key, pad text)")
        db.execute("create index pads on acks (pad)")
        db.execute("create table totals (count integer, sum integer)")
        db.execute("insert into totals values (0, 0)")
        db.execute("commit")
        least = 0
        say("CHECKED nothing yet")
    else:
        least = int(least)
        whole = db.execute("pragma integrity_check").fetchall()
        rows = db.execute("select id, pad from acks order by id").fetchall()
        totals = db.execute("select count, sum from totals").fetchone()
        ids = [id_ for id_, _ in rows]
        if whole != [("ok",)]:
            say("LOST integrity_check:", whole[:3])
            sys.exit()
        if len(ids) < least or ids != list(range(1, len(ids) + 1)):
            say(f"LOST acknowledged were commits up to {least}, there are {len(ids)}, the last is {max(ids, default=0)}")
            sys.exit()
        if totals != (len(ids), sum(ids)) or any(text != pad(id_) for id_, text in rows):
            say(f"LOST {len(ids)} rows, but totals are {totals} or a row is wrong")
            sys.exit()
        say(f"CHECKED {len(ids)} commits, {least} acknowledged")
except sqlite3.DatabaseError as error:
    say("LOST", error)
    sys.exit()
if what == "work":
    (last,) = db.execute("select count from totals").fetchone()
    try:
        while True:
            last += 1
            db.execute("begin immediate")
            db.execute("insert into acks values (?, ?)", (last, pad(last)))
            db.execute("update totals set count = count + 1, sum = sum + ?", (last,))
            db.execute("commit")
            say("ACK", last)
    except sqlite3.DatabaseError as error:
        say("ERROR", error)
    say("GONE")
