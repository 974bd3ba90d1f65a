// A Lumberjack server over Elastic's own library: appends every event to a file as a JSON line, then
// acknowledges its batch.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/elastic/go-lumber/server"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:5044", "address")
	out := flag.String("out", "events.ndjson", "file to append events to")
	delay := flag.Duration("delay", 0, "time between writing a batch and acknowledging it")
	cert := flag.String("cert", "", "certificate, for TLS")
	key := flag.String("key", "", "its key")
	ca := flag.String("client-ca", "", "demand a client certificate of this CA")
	flag.Parse()

	options := []server.Option{server.V1(true), server.V2(true), server.Keepalive(time.Second)}
	if *cert != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *key)
		check(err)
		config := &tls.Config{Certificates: []tls.Certificate{pair}}
		if *ca != "" {
			pem, err := os.ReadFile(*ca)
			check(err)
			config.ClientCAs = x509.NewCertPool()
			config.ClientCAs.AppendCertsFromPEM(pem)
			config.ClientAuth = tls.RequireAndVerifyClientCert
		}
		options = append(options, server.TLS(config))
	}
	file, err := os.OpenFile(*out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	check(err)
	s, err := server.ListenAndServe(*listen, options...)
	check(err)
	log.Print("listening on ", *listen)

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	go func() { <-stop; s.Close(); os.Exit(0) }()
	encoder := json.NewEncoder(file)
	for batch := range s.ReceiveChan() {
		for _, event := range batch.Events {
			check(encoder.Encode(event))
		}
		time.Sleep(*delay)
		batch.ACK()
		log.Print("batch of ", len(batch.Events))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
