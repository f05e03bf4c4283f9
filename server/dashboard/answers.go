package dashboard

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// route is a pattern of http.ServeMux with its protected handler.
type route struct {
	pattern string
	handler http.Handler
}

// refuse answers with an error for the page to show as text.
func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]string{"error": message})
}

// answer answers with a record as JSON. It ignores an error of writing, since the client
// is gone then. A record can contain values unknown to JSON, for example a time after the
// year 9999 from a table.
func answer(w http.ResponseWriter, status int, record any) {
	body, err := json.Marshal(record)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"a row of the database has what cannot be shown"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// maxPage is how many rows a page of a list has at most.
const maxPage = 500

// pageOf reads the requested range of a list.
func pageOf(r *http.Request) (offset, limit int) {
	return number(r, "offset", 0, 0, 1<<30), number(r, "limit", 100, 1, maxPage)
}

// cut returns a page of a list.
func cut[R any](rows []R, offset, limit int) []R {
	offset = min(offset, len(rows))
	return rows[offset:min(len(rows), offset+limit)]
}

// list is some rows of many.
type list[R any] struct {
	Total int `json:"total"` // that match
	Rows  []R `json:"rows"`
}

// number reads a number from the query. An invalid number, or one out of bounds, is
// replaced by a valid one.
func number(r *http.Request, name string, otherwise, least, most int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil {
		n = otherwise
	}
	return min(max(n, least), most)
}

// timeOf reads a time in milliseconds since 1970 from the query.
func timeOf(r *http.Request, name string, otherwise time.Time) time.Time {
	return time.UnixMilli(int64(number(r, name, int(otherwise.UnixMilli()), 0, 1<<52)))
}

func search(r *http.Request) string { return strings.ToLower(r.URL.Query().Get("search")) }

// contains reports whether a text contains another, ignoring case.
func contains(text, part string) bool { return strings.Contains(strings.ToLower(text), part) }

// The bounds on the body of a request.
const (
	maxBody     = 8 << 10 // bytes
	bodyTimeout = 5 * time.Second
)

// readBody reads the one JSON object of a request's body. If the body is invalid, it
// refuses the request.
func readBody[T any](w http.ResponseWriter, r *http.Request) (body T, ok bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, "the body must be of the type application/json")
		return body, false
	}
	// If the deadline cannot be set, the server's own limit applies.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&body)
	if err == nil {
		_, err = decoder.Token()
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		refuse(w, http.StatusRequestEntityTooLarge, "the body is too large")
	case !errors.Is(err, io.EOF):
		refuse(w, http.StatusBadRequest, "the body must be one JSON object of the documented form")
	default:
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // the action may take longer
		return body, true
	}
	return body, false
}
