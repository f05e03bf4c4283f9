package dashboard_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/exactly-one/tenure/postgres"
	"github.com/exactly-one/tenure/server/dashboard"
)

// A service shows the dashboard below a path. Everybody may view it; visitors with a
// token may act.
func Example() {
	backend, err := postgres.New("postgres://db.example.com/app", postgres.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer backend.Close()
	tokens, err := dashboard.Tokens(map[string]string{"anna": "from the environment, or a file"}, nil)
	if err != nil {
		log.Fatal(err)
	}
	page, err := dashboard.New(dashboard.Config{
		Backend: backend, BasePath: "/tenure", Authentication: dashboard.Authentication{Token: tokens},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer page.Close()
	mux := http.NewServeMux()
	mux.Handle("/tenure/", page)

	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost/tenure/", http.NoBody))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
