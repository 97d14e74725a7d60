"""Stores orders in SQLite, and acknowledges each one after its commit."""

import os
import sqlite3

# CI tests this setting too; FULL, the default of SQLite, loses the last order.
SYNCHRONOUS = os.environ.get("ORDERS_SYNCHRONOUS", "EXTRA")


def main():
    db = sqlite3.connect(os.environ["DRIVELAB_DIR"] + "/orders.db", isolation_level=None)
    db.execute(f"PRAGMA synchronous={SYNCHRONOUS}")
    acks = open(os.environ["DRIVELAB_ACKS"], "w", buffering=1)  # one write per line
    db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    for number in range(1, 11):
        db.execute("INSERT INTO orders VALUES (?)", (number,))
        print(number, file=acks)


main()
