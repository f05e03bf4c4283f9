package leaderhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/exactly-one/tenure"
	"github.com/exactly-one/tenure/leaderhttp"
	"github.com/exactly-one/tenure/tenuretest"
)

// A client may send its request to any node.
func ExampleRouter_ForwardToLeader() {
	ctx, cancel := context.WithCancel(context.Background())
	closed := make(chan error)
	defer func() {
		cancel()
		if err := errors.Join(<-closed, <-closed); err != nil {
			log.Fatal(err)
		}
	}()
	db := tenuretest.NewDatabase() // postgres.New in a program
	serve := func(name string) *httptest.Server {
		mux := http.NewServeMux()
		server := httptest.NewServer(mux)
		node, err := tenure.Open(ctx, db, tenure.Config{
			Name:        name,
			Description: tenure.Description{Address: "127.0.0.1", HTTPPort: server.Listener.Addr().(*net.TCPAddr).Port},
			Logger:      slog.New(slog.DiscardHandler),
		})
		if err != nil {
			log.Fatal(err)
		}
		context.AfterFunc(ctx, func() { closed <- node.Close(context.Background()) })
		election, err := node.Election(tenure.NamedRole("orders"))
		if err != nil {
			log.Fatal(err)
		}
		router, err := leaderhttp.New(ctx, election, leaderhttp.Config{})
		if err != nil {
			log.Fatal(err)
		}
		mux.Handle("/", router.ForwardToLeader(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			term := leaderhttp.Term(req.Context()) // fence what the request writes with it
			fmt.Fprintln(w, "handled by", name, "under a valid term:", term.Valid())
		})))
		mux.HandleFunc("GET /healthz", router.Healthz)
		if err := election.Start(ctx); err != nil {
			log.Fatal(err)
		}
		return server
	}
	ask := func(server *httptest.Server) {
		response, err := http.Post(server.URL, "text/plain", nil)
		if err != nil {
			log.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		fmt.Print(string(text))
	}
	first := serve("a")
	defer first.Close()
	ask(first) // the answer comes when a leads
	second := serve("b")
	defer second.Close()
	ask(second)
	// Output:
	// handled by a under a valid term: true
	// handled by a under a valid term: true
}
