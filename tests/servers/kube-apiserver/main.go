// kube-apiserver with its store in one process: kube-apiserver DATA ETCD_PORT OPTION... The options are those of
// kube-apiserver itself. etcd also answers JSON over HTTP, so that a test can compact it.
package main

import (
	"fmt"
	"net/url"
	"os"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if len(os.Args) < 3 {
		fail("usage: kube-apiserver DATA ETCD_PORT OPTION...")
	}
	data, port := os.Args[1], os.Args[2]
	os.Args = append(os.Args[:1], os.Args[3:]...)
	store, err := embed.StartEtcd(settings(data, port))
	if err != nil {
		fail(err)
	}
	<-store.Server.ReadyNotify()
	code := cli.Run(app.NewAPIServerCommand())
	store.Close()
	os.Exit(code)
}

// One member that knows no others, on the loopback interface. What it writes need not survive the machine.
func settings(data, port string) *embed.Config {
	clients := []url.URL{{Scheme: "http", Host: "127.0.0.1:" + port}}
	config := embed.NewConfig()
	config.Dir = data
	config.LogLevel = "warn"
	config.UnsafeNoFsync = true
	config.EnableGRPCGateway = true
	config.ListenClientUrls, config.AdvertiseClientUrls = clients, clients
	config.ListenPeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	return config
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, "kube-apiserver:", why)
	os.Exit(1)
}
