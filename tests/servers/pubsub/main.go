// Google's own Pub/Sub in memory (pstest), as a server, with a face for tests over HTTP at the next port:
//
//	PUT  /topics/NAME                  makes a topic of the project `test`
//	PUT  /subscriptions/NAME?topic=T   makes a subscription; &exactly_once=true, &deadline=SECONDS
//	GET  /subscriptions/NAME           shows one
//	DELETE /subscriptions/NAME         deletes one
//	POST /publish?topic=T              publishes each line of the body; &NAME=VALUE are attributes
//	GET  /messages                     counts: published, acknowledged, deliveries, given back, extended
//	POST /fail?method=M&code=N&times=K refuses the next K calls of a method; with &permanent=true as exactly-once delivery
//	                                   refuses the first message of each
//
// With -stream-timeout the server ends each stream after that time, as Google's does after half an hour.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const project = "projects/test"

// methods are those that can be made to fail. Streams have no such place in pstest.
var methods = []string{"Acknowledge", "ModifyAckDeadline", "CreateSubscription"}

// failures is what calls of a method are refused with.
type failures struct {
	mutex     sync.Mutex
	code      codes.Code
	times     int
	permanent bool
}

// React is called by pstest before each call of the method.
func (f *failures) React(request any) (bool, any, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.times == 0 {
		return false, nil, nil
	}
	f.times--
	refused := status.New(f.code, "as the test wants it")
	var ids []string
	switch request := request.(type) {
	case *pubsubpb.AcknowledgeRequest:
		ids = request.AckIds
	case *pubsubpb.ModifyAckDeadlineRequest:
		ids = request.AckIds
	}
	if f.permanent && len(ids) > 0 {
		info := &errdetails.ErrorInfo{
			Reason:   "EXACTLY_ONCE_ACKID_FAILURE",
			Domain:   "pubsub.googleapis.com",
			Metadata: map[string]string{ids[0]: "PERMANENT_FAILURE_INVALID_ACK_ID"},
		}
		refused, _ = refused.WithDetails(info)
	}
	return true, nil, refused.Err()
}

type face struct {
	server   *pstest.Server
	failures map[string]*failures
}

func fail(out http.ResponseWriter, err error) bool {
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
	}
	return err != nil
}

func answer(out http.ResponseWriter, value any) {
	out.Header().Set("content-type", "application/json")
	if err := json.NewEncoder(out).Encode(value); err != nil {
		log.Print(err)
	}
}

func (f *face) makeTopic(out http.ResponseWriter, request *http.Request) {
	topic := &pubsubpb.Topic{Name: project + "/topics/" + request.PathValue("name")}
	_, err := f.server.GServer.CreateTopic(request.Context(), topic)
	fail(out, err)
}

func (f *face) makeSubscription(out http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	deadline, _ := strconv.Atoi(query.Get("deadline"))
	if deadline == 0 {
		deadline = 10
	}
	subscription := &pubsubpb.Subscription{
		Name:                      project + "/subscriptions/" + request.PathValue("name"),
		Topic:                     project + "/topics/" + query.Get("topic"),
		AckDeadlineSeconds:        int32(deadline),
		EnableExactlyOnceDelivery: query.Get("exactly_once") == "true",
	}
	_, err := f.server.GServer.CreateSubscription(request.Context(), subscription)
	fail(out, err)
}

func (f *face) showSubscription(out http.ResponseWriter, request *http.Request) {
	name := project + "/subscriptions/" + request.PathValue("name")
	found, err := f.server.GServer.GetSubscription(request.Context(), &pubsubpb.GetSubscriptionRequest{Subscription: name})
	if !fail(out, err) {
		answer(out, map[string]any{"topic": found.Topic, "deadline": found.AckDeadlineSeconds})
	}
}

func (f *face) deleteSubscription(out http.ResponseWriter, request *http.Request) {
	name := project + "/subscriptions/" + request.PathValue("name")
	_, err := f.server.GServer.DeleteSubscription(context.Background(), &pubsubpb.DeleteSubscriptionRequest{Subscription: name})
	fail(out, err)
}

func (f *face) publish(out http.ResponseWriter, request *http.Request) {
	attributes := map[string]string{}
	for name, values := range request.URL.Query() {
		if name != "topic" {
			attributes[name] = values[0]
		}
	}
	topic := project + "/topics/" + request.URL.Query().Get("topic")
	lines := bufio.NewScanner(request.Body)
	lines.Buffer(nil, 16<<20)
	var ids []string
	for lines.Scan() {
		ids = append(ids, f.server.Publish(topic, append([]byte(nil), lines.Bytes()...), attributes))
	}
	answer(out, ids)
}

func (f *face) messages(out http.ResponseWriter, _ *http.Request) {
	counts := map[string]int{}
	for _, message := range f.server.Messages() {
		counts["published"]++
		counts["deliveries"] += message.Deliveries
		if message.Acks > 0 {
			counts["acknowledged"]++
		}
		for _, change := range message.Modacks {
			if change.AckDeadline == 0 {
				counts["returned"]++
			} else {
				counts["extended"]++
			}
		}
	}
	answer(out, counts)
}

func (f *face) setFailures(out http.ResponseWriter, request *http.Request) {
	query := request.URL.Query()
	failures, is := f.failures[query.Get("method")]
	if !is {
		http.Error(out, "no such method", http.StatusNotFound)
		return
	}
	code, _ := strconv.Atoi(query.Get("code"))
	times, _ := strconv.Atoi(query.Get("times"))
	failures.mutex.Lock()
	defer failures.mutex.Unlock()
	failures.code, failures.times = codes.Code(code), times
	failures.permanent = query.Get("permanent") == "true"
}

func main() {
	port := flag.Int("port", 8085, "port on 127.0.0.1; the face for tests is at the next one")
	timeout := flag.Duration("stream-timeout", 0, "how long a stream lasts; 0: for ever")
	flag.Parse()

	f := &face{failures: map[string]*failures{}}
	var reactors []pstest.ServerReactorOption
	for _, method := range methods {
		f.failures[method] = &failures{}
		reactors = append(reactors, pstest.ServerReactorOption{FuncName: method, Reactor: f.failures[method]})
	}
	f.server = pstest.NewServerWithAddress(fmt.Sprintf("127.0.0.1:%d", *port), reactors...)
	f.server.SetStreamTimeout(*timeout)
	log.Print("listening on ", f.server.Addr)

	mux := http.NewServeMux()
	mux.HandleFunc("PUT /topics/{name}", f.makeTopic)
	mux.HandleFunc("PUT /subscriptions/{name}", f.makeSubscription)
	mux.HandleFunc("GET /subscriptions/{name}", f.showSubscription)
	mux.HandleFunc("DELETE /subscriptions/{name}", f.deleteSubscription)
	mux.HandleFunc("POST /publish", f.publish)
	mux.HandleFunc("GET /messages", f.messages)
	mux.HandleFunc("POST /fail", f.setFailures)
	server := http.Server{Addr: fmt.Sprintf("127.0.0.1:%d", *port+1), Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
