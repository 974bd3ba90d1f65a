package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	_ "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// forwarder is a client of OTLP over gRPC: the messages of the Collector, over the library of Go.
type forwarder struct {
	target, compression, login string
	secure                     bool
}

// serve answers each line that comes over TCP when its request was taken, and with the status if it was refused for
// good. Four requests are under way at once over one connection.
func (of forwarder) serve(listen string) {
	security := insecure.NewCredentials()
	if of.secure {
		security = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	}
	cc, err := grpc.NewClient(of.target, grpc.WithTransportCredentials(security))
	check(err)
	listener, err := net.Listen("tcp", listen)
	check(err)
	log.Print("forwarding from ", listen)
	for {
		conn, err := listener.Accept()
		check(err)
		go of.forward(conn, plogotlp.NewGRPCClient(cc))
	}
}

func (of forwarder) forward(conn net.Conn, client plogotlp.GRPCClient) {
	defer conn.Close()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(conn)
		scanner.Buffer(nil, 1<<26)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
	}()
	var answers sync.Mutex
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for line := range lines {
				batch := []string{line}
				for len(batch) < 100 && len(lines) > 0 {
					if line, ok := <-lines; ok {
						batch = append(batch, line)
					}
				}
				said := of.send(client, batch)
				answers.Lock()
				for range batch {
					fmt.Fprintln(conn, said)
				}
				answers.Unlock()
			}
		}()
	}
	group.Wait()
}

// send sends lines until they are taken, or refused for good.
func (of forwarder) send(client plogotlp.GRPCClient, lines []string) string {
	logs := plog.NewLogs()
	records := logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	for _, line := range lines {
		records.AppendEmpty().Body().SetStr(line)
	}
	ctx := context.Background()
	if of.login != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", of.login)
	}
	options := []grpc.CallOption{}
	if of.compression != "" {
		options = append(options, grpc.UseCompressor(of.compression))
	}
	for {
		response, err := client.Export(ctx, plogotlp.NewExportRequestFromLogs(logs), options...)
		if err == nil {
			if refused := response.PartialSuccess().RejectedLogRecords(); refused > 0 {
				return fmt.Sprint("refused ", refused)
			}
			return "taken"
		}
		log.Print(err, status.Convert(err).Details())
		if status.Code(err) != codes.Unavailable {
			return status.Code(err).String()
		}
		time.Sleep(10 * time.Millisecond)
	}
}
