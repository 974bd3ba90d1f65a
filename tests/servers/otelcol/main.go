// The OTLP receiver of the OpenTelemetry Collector, over gRPC or over HTTP, before a consumer that appends every
// request to a file as a line of OTLP's JSON, and then says that it has it. With -forward, a client over gRPC: sends
// the lines that come over TCP to a server, and answers each when its request was taken.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

// sink is what stands behind the receiver.
type sink struct {
	mutex     sync.Mutex
	file      *os.File
	marshaler plog.JSONMarshaler
	// The first requests that it does not take: for now, and for good.
	busy, broken int
}

func (s *sink) consume(_ context.Context, logs plog.Logs) error {
	// A test of the connection has no logs.
	if logs.LogRecordCount() == 0 {
		return nil
	}
	line, err := s.marshaler.MarshalLogs(logs)
	if err != nil {
		return consumererror.NewPermanent(err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.busy > 0 {
		s.busy--
		return errors.New("too much to do")
	}
	if s.broken > 0 {
		s.broken--
		return consumererror.NewPermanent(errors.New("this can never be taken"))
	}
	_, err = s.file.Write(append(line, '\n'))
	return err
}

func main() {
	listen := flag.String("listen", "127.0.0.1:4317", "address")
	http := flag.Bool("http", false, "over HTTP instead of gRPC")
	out := flag.String("out", "logs.ndjson", "file to append requests to")
	cert := flag.String("cert", "", "certificate, for TLS")
	key := flag.String("key", "", "its key")
	ca := flag.String("client-ca", "", "demand a client certificate of this CA")
	busy := flag.Int("busy", 0, "so many requests are to come again")
	broken := flag.Int("broken", 0, "so many requests are refused for good")
	large := flag.Int("large", 0, "largest request in MiB; 0: the receiver's default")
	var of forwarder
	flag.StringVar(&of.target, "forward", "", "address of a server that gets the lines which come to -listen")
	flag.StringVar(&of.compression, "compression", "", "gzip, or nothing")
	flag.StringVar(&of.login, "login", "", "the metadata authorization, with a slash for a space")
	flag.BoolVar(&of.secure, "tls", false, "over TLS; the server is not checked")
	flag.Parse()
	if of.target != "" {
		of.login = strings.Replace(of.login, "/", " ", 1)
		of.serve(*listen)
	}

	file, err := os.OpenFile(*out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	check(err)
	s := &sink{file: file, busy: *busy, broken: *broken}
	logs, err := consumer.NewLogs(s.consume)
	check(err)

	factory := otlpreceiver.NewFactory()
	protocol := map[string]any{"endpoint": *listen}
	if *cert != "" {
		tls := map[string]any{"cert_file": *cert, "key_file": *key}
		if *ca != "" {
			tls["client_ca_file"] = *ca
		}
		protocol["tls"] = tls
	}
	name := "grpc"
	if *http {
		name = "http"
	}
	if *large > 0 && *http {
		protocol["max_request_body_size"] = *large << 20
	} else if *large > 0 {
		protocol["max_recv_msg_size_mib"] = *large
	}
	protocols := map[string]any{name: protocol}
	config := factory.CreateDefaultConfig()
	check(confmap.NewFromStringMap(map[string]any{"protocols": protocols}).Unmarshal(config))
	settings := receiver.Settings{
		ID:                component.NewID(factory.Type()),
		TelemetrySettings: componenttest.NewNopTelemetrySettings(),
	}
	r, err := factory.CreateLogs(context.Background(), settings, config, logs)
	check(err)
	check(r.Start(context.Background(), componenttest.NewNopHost()))
	log.Print("listening on ", *listen, " for ", name)

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	<-stop
	check(r.Shutdown(context.Background()))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
