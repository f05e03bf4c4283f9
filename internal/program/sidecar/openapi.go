package sidecar

import (
	_ "embed" // for the description
	"net/http"
)

// description is the API in the words of OpenAPI 3.1.
//
//go:embed openapi.json
var description []byte

// describe serves the API's description.
func describe(w http.ResponseWriter, _ *http.Request) {
	answerJSON(w, http.StatusOK, description)
}
