# Starts PostgreSQL, and reads all rows: they have the number of the last acknowledged transaction, or of the next one.
# With TORN, the path of the program of torn.c, images without a torn page of the table are not judged.
bin=/usr/lib/postgresql/15/bin
last=$(tail -n 1 "$DRIVELAB_ACKS")
if [ "$TORN" ]; then
  [ "$last" ] && ! "$TORN" "$DRIVELAB_DIR"/pg/base/5/163[89]? || exit 77
fi
$bin/pg_ctl -s -w -t 50 -D "$DRIVELAB_DIR/pg" -l /tmp/pg.log start > /dev/null ||
  { echo "unopenable: $(grep -E 'PANIC|FATAL' /tmp/pg.log | tail -n 1)"; exit 12; }
code=0
[ "$last" ] && {
  found=$(psql -h /tmp -qAt postgres -c 'SELECT DISTINCT left(v, 1) FROM orders' 2>&1)
  case $found in
    *ERROR*) echo "corrupt: $found"; code=11 ;;
    $last | $((last + 1))) ;;
    ?) echo "lost $last"; code=10 ;;
    *) echo "corrupt: rows of the transactions" $found; code=11 ;;
  esac
}
$bin/pg_ctl -s -D "$DRIVELAB_DIR/pg" stop -m immediate
exit $code
