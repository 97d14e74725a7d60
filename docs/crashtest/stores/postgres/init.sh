# Makes a PostgreSQL with checksums, and with the settings in $1, such as "full_page_writes=off".
bin=/usr/lib/postgresql/15/bin
$bin/initdb -k -D "$DRIVELAB_DIR/pg" --auth=trust --no-locale -E UTF8 --wal-segsize=4
for setting in listen_addresses="''" unix_socket_directories="'/tmp'" shared_buffers=8MB max_wal_size=32MB \
  min_wal_size=8MB autovacuum=off $1; do
  echo $setting >> "$DRIVELAB_DIR/pg/postgresql.conf"
done
