// Writes to a bbolt, or checks it: bbolt-store load COUNT, bbolt-store make COUNT, bbolt-store check. `load` commits
// COUNT transactions, without synchronization if NOSYNC is set. `make` makes COUNT databases, while another goroutine
// synchronizes a file of its own, so the journal of the file system is committed at any time.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	bolt "go.etcd.io/bbolt"
)

func end(code int, words ...any) {
	fmt.Println(words...)
	os.Exit(code)
}

func must(err error) {
	if err != nil {
		end(1, err)
	}
}

func key(number uint64) []byte { return binary.BigEndian.AppendUint64(nil, number) }

func load(path string, count uint64, acks *os.File) {
	db, err := bolt.Open(path, 0600, nil)
	must(err)
	db.NoSync = os.Getenv("NOSYNC") != ""
	for number := uint64(1); number <= count; number++ {
		must(db.Update(func(tx *bolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("orders"))
			must(err)
			return bucket.Put(key(number), make([]byte, 1000))
		}))
		fmt.Fprintln(acks, number)
	}
}

func makeMany(folder string, count uint64) {
	other, err := os.Create(folder + "/other")
	must(err)
	go func() {
		for {
			other.WriteString("x")
			other.Sync()
		}
	}()
	for number := uint64(1); number <= count; number++ {
		db, err := bolt.Open(fmt.Sprintf("%s/%d.db", folder, number), 0600, nil)
		must(err)
		must(db.Close())
	}
}

func check(path string, tokens []string) {
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return // It is made again.
	}
	db, err := bolt.Open(path, 0600, nil)
	if err != nil {
		end(12, "unopenable:", err)
	}
	defer db.Close()
	must(db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			end(11, "corrupt:", err)
		}
		bucket := tx.Bucket([]byte("orders"))
		for _, token := range tokens {
			number, err := strconv.ParseUint(token, 10, 64)
			must(err)
			if bucket == nil || bucket.Get(key(number)) == nil {
				end(10, "lost", number)
			}
		}
		return nil
	}))
}

func main() {
	folder := os.Getenv("DRIVELAB_DIR")
	if os.Args[1] == "check" {
		text, err := os.ReadFile(os.Getenv("DRIVELAB_ACKS"))
		must(err)
		files, err := filepath.Glob(folder + "/*.db")
		must(err)
		tokens := strings.Fields(string(text))
		if len(files) == 0 && len(tokens) > 0 {
			end(10, "lost", tokens[0])
		}
		for _, file := range files {
			check(file, tokens)
		}
		return
	}
	acks, err := os.OpenFile(os.Getenv("DRIVELAB_ACKS"), os.O_WRONLY, 0)
	must(err)
	count, err := strconv.ParseUint(os.Args[2], 10, 64)
	must(err)
	if os.Args[1] == "make" {
		makeMany(folder, count)
	} else {
		load(folder+"/b.db", count, acks)
	}
}
