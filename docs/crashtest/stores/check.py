"""Resident checker of the stores that load.py writes: python3 check.py STORE SETTING.

The transactions in a store must be complete, without a hole before the last one, and all acknowledged ones must be
among them.

A LevelDB that cannot be opened is not judged before the first acknowledgement: there is no durability guarantee up to
then, and LevelDB 1.22 cannot be opened if power fails while it makes its folder. After the first acknowledgement, it is
a failure."""

import os
import sys


class Broken(Exception):
    pass


def value(number):
    return (b"%06d " % number) * 150


def pairs(found, is_value=lambda number, data: data == value(number)):
    """Returns the transactions of which both keys are there."""
    tables = {b"a": set(), b"b": set()}
    for key, data in found:
        number = int(key[1:])
        if not is_value(number, data):
            raise Broken(f"corrupt: value of key {number}")
        tables[key[:1]].add(number)
    if tables[b"a"] != tables[b"b"]:
        raise Broken("corrupt: half a transaction")
    return tables[b"a"]


def sqlite(folder, _):
    import sqlite3

    db = sqlite3.connect(folder + "/s.db")
    try:
        state = db.execute("PRAGMA integrity_check").fetchone()[0]
        if state != "ok":
            raise Broken("corrupt: " + state.splitlines()[0])
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master")}
        found = []
        for table in sorted(tables):
            rows = db.execute(f"SELECT id, v FROM {table}")
            found += [(table.encode() + b"%d" % row[0], row[1]) for row in rows]
        return pairs(found)
    except sqlite3.OperationalError as error:
        raise Broken(f"unopenable: {error}")
    except sqlite3.DatabaseError as error:
        raise Broken(f"corrupt: {error}")
    finally:
        db.close()


def lmdb(folder, _):
    import lmdb

    if not os.path.exists(folder + "/l/data.mdb"):
        return set()
    try:
        env = lmdb.open(folder + "/l", map_size=8 << 20)
    except lmdb.Error as error:
        raise Broken(f"unopenable: {error}")
    try:
        with env.begin() as transaction:
            return pairs(list(transaction.cursor()))
    except lmdb.Error as error:
        raise Broken(f"corrupt: {error}")
    finally:
        env.close()


def leveldb(folder, _):
    import plyvel

    try:
        db = plyvel.DB(folder + "/v", create_if_missing=True, paranoid_checks=True)
    except plyvel.Error as error:
        raise Broken(f"unopenable: {error}")
    try:
        found = list(db.iterator(verify_checksums=True))
        return pairs(found, lambda number, data: data[4:] == value(number) * 4)
    except plyvel.Error as error:
        raise Broken(f"corrupt: {error}")
    finally:
        db.close()


def berkeley(folder, _):
    from bsddb3 import db as bdb

    if not os.path.isdir(folder + "/d"):
        return set()
    env = bdb.DBEnv()
    flags = bdb.DB_CREATE | bdb.DB_INIT_MPOOL | bdb.DB_INIT_TXN | bdb.DB_INIT_LOG | bdb.DB_INIT_LOCK
    try:
        env.open(folder + "/d", flags | bdb.DB_PRIVATE | bdb.DB_RECOVER)
        db = bdb.DB(env)
        db.open("t", None, bdb.DB_BTREE, bdb.DB_CREATE | bdb.DB_AUTO_COMMIT)
        found = pairs([(key, data) for key, data in db.items()])
        db.close()
        return found
    except bdb.DBError as error:
        raise Broken(f"unopenable: {error}")
    finally:
        env.close()


def redis(folder, setting):
    import redis_client

    try:
        server = redis_client.Server(setting, folder)
    except redis_client.Failed as error:
        raise Broken(f"unopenable: {error}")
    try:
        keys = server.call(b"KEYS", b"*")
        return pairs([(key, server.call(b"GET", key)) for key in keys])
    finally:
        server.end()


def append(folder, _):
    if not os.path.exists(folder + "/log"):
        return set()
    lines = open(folder + "/log", "rb").read().split(b"\n")
    # The last line may be incomplete.
    for number, line in enumerate(lines[:-1], 1):
        if line != value(number):
            raise Broken(f"corrupt: line {number}")
    return set(range(1, len(lines)))


def rename(folder, _):
    if not os.path.exists(folder + "/state"):
        return set()
    data = open(folder + "/state", "rb").read()
    number = int(data[:6]) if data[:6].isdigit() else 0
    if data != value(number):
        raise Broken(f"corrupt: {len(data)} bytes")
    return set(range(1, number + 1))


def judged(store, setting, folder, acks):
    try:
        found = globals()[store](folder, setting)
    except Broken as broken:
        is_guaranteed = acks or store != "leveldb" or not str(broken).startswith("unopenable")
        return str(broken) if is_guaranteed else "skip"
    last = max(found, default=0)
    if len(found) < last:
        missing = min(set(range(1, last)) - found)
        return f"rule: transaction {last} is there, and {missing} before it is not"
    lost = [number for number in acks if number not in found]
    return f"lost {lost[0]}" if lost else "ok"


def main():
    store, setting = sys.argv[1:3]
    for line in sys.stdin:
        folder, acks, _, _ = line.rstrip("\n").split("\t")
        acks = [int(number) for number in open(acks).read().split()]
        print(judged(store, setting, folder, acks), flush=True)


main()
