# First process of the soak's guest, on the host's root. Before it come the lines SOAK_FS, SOAK_CLIENT, SOAK_LEAST (the last
# commit acknowledged), SOAK_WORK (`work` or `check`), SOAK_CLUSTER (a PostgreSQL cluster to begin with), SOAK_BIN (PostgreSQL's
# programs), SOAK_USER (user and group of its server) and SOAK_PY (sqlite.py).
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run TMPDIR=/run SQLITE_TMPDIR=/run
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev 2>/dev/null
for link in fd:fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do
    [ -e /dev/${link%%:*} ] || ln -s /proc/self/${link#*:} /dev/${link%%:*}
done
mkdir -p /dev/shm
for place in /dev/shm /run; do mount -t tmpfs none $place; done
mkdir -p /run/disk

end() { busybox poweroff -f; exec sleep 1000; }
die() { echo "ERROR $*"; end; }
lost() { echo "LOST $*"; end; }

mount_it() {
    mount -t $SOAK_FS /dev/vda /run/disk || { dmesg | tail -5; lost "$SOAK_FS does not mount"; }
}

new() {
    case $SOAK_FS in
    ext4) mkfs.ext4 -q -F /dev/vda ;;
    xfs) mkfs.xfs -q -f /dev/vda ;;
    esac || die mkfs
    mount_it
    if [ $SOAK_CLIENT = postgresql ]; then
        cp -a "$SOAK_CLUSTER" /run/disk/cluster || die "copying the cluster"
    fi
    sync
}

# The journal is replayed, then nothing may be left to repair.
file_system() {
    mount_it
    umount /run/disk || die umount
    case $SOAK_FS in
    ext4) e2fsck -fn /dev/vda > /run/fsck 2>&1 ;;
    xfs) xfs_repair -n /dev/vda > /run/fsck 2>&1 ;;
    esac || { grep -v '^Pass' /run/fsck | head -5; lost "$SOAK_FS: fsck finds errors"; }
    mount_it
}

if [ "$SOAK_LEAST" = new ]; then new; else file_system; fi

sqlite() {
    # With rollback journal, or with write-ahead log.
    [ $SOAK_FS = xfs ] && name=wal || name=db
    /usr/bin/python3 "$SOAK_PY" /run/disk/$name $SOAK_LEAST $SOAK_WORK
}

as_user() { setpriv --reuid=${SOAK_USER%:*} --regid=${SOAK_USER#*:} --clear-groups "$@"; }
# With LABEL, one line.
sql() { as_user $SOAK_BIN/psql -h /run/pg -U soak -At postgres -c "$1" 2>&1 | tr '\n' ' '; }

postgresql() {
    mkdir -p /run/pg && chown $SOAK_USER /run/pg
    as_user $SOAK_BIN/pg_ctl -D /run/disk/cluster -w -t 100 -l /run/pg/log start > /dev/null ||
        { tail -n 5 /run/pg/log; lost "PostgreSQL does not start"; }
    if [ "$SOAK_LEAST" != new ]; then
        # Reading all of a table also checks its pages' checksums.
        rows=$(sql "select count(*) filter (where id <= $SOAK_LEAST) = $SOAK_LEAST, count(*) = coalesce(max(id), 0), count(*) filter (where pad <> repeat(md5(id::text), 20)) = 0, count(*), max(id) from acks")
        case $rows in "t|t|t|"*) ;; *) lost "acknowledged were commits up to $SOAK_LEAST; all there|no gap|contents right|count|last: $rows" ;; esac
        sums=$(sql "select count(distinct total) = 1, string_agg(total::text, ' ') from (select coalesce(sum(delta), 0) total from pgbench_history union all select sum(abalance) from pgbench_accounts union all select sum(bbalance) from pgbench_branches union all select sum(tbalance) from pgbench_tellers) sums")
        case $sums in "t|"*) ;; *) lost "pgbench's sums differ: $sums" ;; esac
        index=$(sql "select count(*) >= 4, count(bt_index_check(c.oid, true)) from pg_class c join pg_index i on i.indexrelid = c.oid where c.relname ~ '^(pgbench|acks)'")
        case $index in "t|"*) ;; *) lost "amcheck: $index" ;; esac
        echo "CHECKED $rows"
    else
        echo "CHECKED nothing yet"
    fi
    if [ $SOAK_WORK = work ]; then
        as_user $SOAK_BIN/pgbench -h /run/pg -U soak -n -c 2 -T 1000 postgres > /run/pgbench 2>&1 &
        next=$(sql "select coalesce(max(id), 0) from acks")
        next=${next% }
        while :; do
            next=$((next + 1))
            echo "insert into acks values ($next, repeat(md5('$next'), 20)) returning 'ACK ' || id;"
        done | as_user $SOAK_BIN/psql -h /run/pg -U soak -At -q -v ON_ERROR_STOP=1 postgres 2>&1 | sed -u '/^ACK/!s/^/ERROR /'
        echo GONE
    else
        as_user $SOAK_BIN/pg_ctl -D /run/disk/cluster -m fast -w stop > /dev/null
        as_user $SOAK_BIN/pg_checksums -c -D /run/disk/cluster > /run/sums 2>&1 || lost "pg_checksums: $(tail -n 3 /run/sums | tr '\n' ' ')"
        echo "CHECKED checksums"
    fi
}

$SOAK_CLIENT
end
