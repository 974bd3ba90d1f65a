// A Lumberjack server over Elastic's own library: appends every event to a file as a JSON line, then
// acknowledges its batch. With -forward, a client over the same library: sends the lines of JSON that come over
// TCP to a server, in batches, and answers each line when its batch was acknowledged.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	client "github.com/elastic/go-lumber/client/v2"
	"github.com/elastic/go-lumber/server"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:5044", "address")
	out := flag.String("out", "events.ndjson", "file to append events to")
	delay := flag.Duration("delay", 0, "time between writing a batch and acknowledging it")
	cert := flag.String("cert", "", "certificate, for TLS")
	key := flag.String("key", "", "its key")
	ca := flag.String("client-ca", "", "demand a client certificate of this CA")
	forward := flag.String("forward", "", "address of a server that gets the lines which come to -listen")
	level := flag.Int("compression", 3, "compression level of batches; 0 is none")
	size := flag.Int("batch", 100, "events of a batch")
	secure := flag.Bool("tls", false, "over TLS, with -cert and -key if there are any; the server is not checked")
	flag.Parse()
	if *forward != "" {
		config := &tls.Config{InsecureSkipVerify: true}
		if *cert != "" {
			pair, err := tls.LoadX509KeyPair(*cert, *key)
			check(err)
			config.Certificates = []tls.Certificate{pair}
		}
		dial := func(network, address string) (net.Conn, error) { return net.Dial(network, address) }
		if *secure {
			dial = func(network, address string) (net.Conn, error) { return tls.Dial(network, address, config) }
		}
		serveForwarder(*listen, forwarder{target: *forward, level: *level, size: *size, dial: dial})
		return
	}

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

type forwarder struct {
	target      string
	level, size int
	dial        func(network, address string) (net.Conn, error)
}

func serveForwarder(listen string, of forwarder) {
	listener, err := net.Listen("tcp", listen)
	check(err)
	log.Print("forwarding from ", listen)
	for {
		conn, err := listener.Accept()
		check(err)
		go of.serve(conn)
	}
}

// serve sends the lines of a connection, again and again until they are acknowledged.
func (of forwarder) serve(conn net.Conn) {
	defer conn.Close()
	lines := make(chan []byte, of.size)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(conn)
		scanner.Buffer(nil, 1<<26)
		for scanner.Scan() {
			lines <- append([]byte(nil), scanner.Bytes()...)
		}
	}()
	var to *client.SyncClient
	for line := range lines {
		batch := []interface{}{json.RawMessage(line)}
		for len(batch) < of.size && len(lines) > 0 {
			batch = append(batch, json.RawMessage(<-lines))
		}
		for sent := 0; sent < len(batch); {
			var err error
			if to == nil {
				to, err = client.SyncDialWith(of.dial, of.target, client.CompressionLevel(of.level))
			}
			if err == nil {
				var n int
				n, err = to.Send(batch[sent:])
				sent += n
			}
			if err != nil {
				log.Print(err)
				to = nil
				time.Sleep(10 * time.Millisecond)
			}
		}
		for range batch {
			if _, err := conn.Write([]byte("acknowledged\n")); err != nil {
				return
			}
		}
	}
}
