package sidecar

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// maxBody bounds the body of a request, in bytes.
const maxBody = 4 << 10

// readBody reads the body of a request. shape describes the allowed form in words. A
// missing body is an empty one. With an unusable body the request is refused.
func readBody[T any](w http.ResponseWriter, r *http.Request, shape string) (T, bool) {
	var none T
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, codeTooLarge, fmt.Sprintf("the body has more than %d bytes", maxBody))
		return none, false
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, codeInvalidBody, "the body did not arrive")
		return none, false
	}
	if len(text) == 0 {
		return none, true
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, codeMediaType, "the body must be of the type application/json")
		return none, false
	}
	body, ok := decodeBody[T](text)
	if !ok {
		refuse(w, http.StatusBadRequest, codeInvalidBody, "the body must be one JSON object, "+shape)
	}
	return body, ok
}

// decodeBody reads one object and nothing else.
func decodeBody[T any](text []byte) (T, bool) {
	var none T
	var body *T // stays nil for null
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil || body == nil {
		return none, false
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return none, false
	}
	return *body, true
}
