"""Writes to a store, one transaction at a time: python3 load.py STORE SETTING. The numbers of its transactions are
acknowledged after each of them."""

import os
import sys
import time

FOLDER = os.environ["DRIVELAB_DIR"]
COUNT = int(os.environ.get("STORES_COUNT", "12"))


def value(number):
    """Returns the value of a key; check.py has the same function."""
    return (b"%06d " % number) * 150


def sqlite(setting):
    import sqlite3

    journal, synchronous = setting.split("+")
    db = sqlite3.connect(FOLDER + "/s.db", isolation_level=None)
    db.execute(f"PRAGMA journal_mode={journal}")
    db.execute(f"PRAGMA synchronous={synchronous}")
    db.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, v BLOB)")
    db.execute("CREATE TABLE b (id INTEGER PRIMARY KEY, v BLOB)")

    def put(number):
        db.execute("BEGIN")
        for table in "ab":
            db.execute(f"INSERT INTO {table} VALUES (?, ?)", (number, value(number)))
        db.execute("COMMIT")

    return put


def lmdb(setting):
    import lmdb

    settings = {
        "default": {},
        "nosync": {"sync": False},
        "nometasync": {"metasync": False},
        "mapasync": {"writemap": True, "map_async": True},
    }
    env = lmdb.open(FOLDER + "/l", map_size=8 << 20, **settings[setting])

    def put(number):
        with env.begin(write=True) as transaction:
            for table in (b"a", b"b"):
                transaction.put(table + b"%06d" % number, value(number))

    return put


def leveldb(setting):
    import plyvel

    # The smallest buffer: the log is replaced after 64 KiB.
    db = plyvel.DB(FOLDER + "/v", create_if_missing=True, write_buffer_size=64 << 10)

    def put(number):
        # "nth": every third write is synchronized, as LevelDB's documentation suggests for bulk loads.
        with db.write_batch(sync=setting == "sync" or setting == "nth" and number % 3 == 0) as batch:
            for table in (b"a", b"b"):
                batch.put(table + b"%06d" % number, os.urandom(4) + value(number) * 4)

    return put


def berkeley(setting):
    from bsddb3 import db as bdb

    os.mkdir(FOLDER + "/d")
    env = bdb.DBEnv()
    env.open(
        FOLDER + "/d",
        bdb.DB_CREATE | bdb.DB_INIT_MPOOL | bdb.DB_INIT_TXN | bdb.DB_INIT_LOG | bdb.DB_INIT_LOCK | bdb.DB_PRIVATE,
    )
    db = bdb.DB(env)
    db.open("t", None, bdb.DB_BTREE, bdb.DB_CREATE | bdb.DB_AUTO_COMMIT)
    flags = bdb.DB_TXN_NOSYNC if setting == "nosync" else 0

    def put(number):
        transaction = env.txn_begin()
        for table in (b"a", b"b"):
            db.put(table + b"%06d" % number, value(number), transaction)
        transaction.commit(flags)

    return put


def redis(setting):
    import redis_client

    # The server must end before this program does, so that its files are complete at the orderly end.
    server = redis_client.Server(setting, FOLDER)

    def put(number):
        if number == COUNT // 2:
            server.rewrite()
        server.call(b"MSET", b"a%d" % number, value(number), b"b%d" % number, value(number))

    put.end = server.end
    return put


def append(setting):
    log = os.open(FOLDER + "/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    synchronize(FOLDER)

    def put(number):
        os.write(log, value(number) + b"\n")
        if setting == "fsync":
            os.fsync(log)

    return put


def rename(setting):
    def put(number):
        with open(FOLDER + "/new", "wb") as file:
            file.write(value(number))
            file.flush()
            # The first file replaces none: a file system that orders replacements does not order its data.
            if setting != "nofsync" or number == 1:
                os.fsync(file.fileno())
        os.rename(FOLDER + "/new", FOLDER + "/state")
        if setting in ("fsync", "nofsync"):
            synchronize(FOLDER)

    return put


def synchronize(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def main():
    store, setting = sys.argv[1:3]
    put = globals()[store](setting)
    acks = open(os.environ["DRIVELAB_ACKS"], "w", buffering=1)
    pause = float(os.environ.get("STORES_PAUSE", "0"))
    for number in range(1, COUNT + 1):
        put(number)
        print(number, file=acks)
        # Time for the kernel to write in the background.
        time.sleep(pause)
    if hasattr(put, "end"):
        put.end()


main()
