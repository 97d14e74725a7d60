// Writes to an etcd with one member, or checks it: etcd-store load COUNT, etcd-store check. The server is in this
// process and its client, too, so no network is needed. The module's version of etcd is the one that is tested.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

func start(folder string) (*embed.Etcd, error) {
	// The sockets are in the current folder.
	if err := os.Chdir("/tmp"); err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Dir = folder + "/etcd"
	config.TickMs, config.ElectionMs = 10, 100
	config.LogLevel = "panic"
	config.LogOutputs = []string{"/dev/null"}
	at := func(name string) []url.URL { return []url.URL{{Scheme: "unix", Host: name}} }
	config.LPUrls, config.LCUrls = at("peer:1"), at("client:1")
	config.APUrls, config.ACUrls = config.LPUrls, config.LCUrls
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-server.Server.ReadyNotify():
		return server, nil
	case err := <-server.Err():
		return nil, err
	case <-time.After(60 * time.Second):
		return nil, fmt.Errorf("not ready after 60 s")
	}
}

func end(code int, words ...any) {
	fmt.Println(words...)
	os.Exit(code)
}

func main() {
	isCheck := os.Args[1] == "check"
	var acknowledged []byte
	if isCheck {
		// While a member is made, nothing must survive yet.
		if acknowledged, _ = os.ReadFile(os.Getenv("DRIVELAB_ACKS")); len(acknowledged) == 0 {
			end(77)
		}
	}
	server, err := start(os.Getenv("DRIVELAB_DIR"))
	if err != nil {
		end(12, "unopenable:", err)
	}
	client := v3client.New(server.Server)
	ctx := context.Background()
	if isCheck {
		for _, key := range strings.Fields(string(acknowledged)) {
			got, err := client.Get(ctx, key)
			if err != nil {
				end(12, "unopenable:", err)
			}
			if len(got.Kvs) == 0 {
				end(10, "lost", key)
			}
		}
		end(0)
	}
	acks, err := os.OpenFile(os.Getenv("DRIVELAB_ACKS"), os.O_WRONLY, 0)
	if err != nil {
		end(1, err)
	}
	count, _ := strconv.Atoi(os.Args[2])
	for number := 1; number <= count; number++ {
		if _, err := client.Put(ctx, strconv.Itoa(number), strings.Repeat("v", 100)); err != nil {
			end(1, err)
		}
		fmt.Fprintln(acks, number)
	}
	// An orderly end, so that the last image has everything.
	server.Close()
}
