# Changes rows of 9 pages in place, and writes the pages by a checkpoint after each transaction.
set -e
bin=/usr/lib/postgresql/15/bin
$bin/pg_ctl -s -w -t 120 -D "$DRIVELAB_DIR/pg" -l /tmp/pg.log start
{
  echo "CREATE TABLE orders (id int, v text) WITH (fillfactor = 40); ALTER TABLE orders ALTER v SET STORAGE PLAIN;"
  echo "INSERT INTO orders SELECT id, repeat('0', 800) FROM generate_series(1, 36) id; CHECKPOINT;"
  for n in 1 2 3 4 5; do
    echo "UPDATE orders SET v = repeat('$n', 800); CHECKPOINT;"
    echo "\\! echo $n > \$DRIVELAB_ACKS"
  done
} | psql -h /tmp -qAt postgres -v ON_ERROR_STOP=1
$bin/pg_ctl -s -w -D "$DRIVELAB_DIR/pg" stop -m fast
