package sidecar

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/exactly-one/tenure/internal/printable"
)

// The codes of errors, for programs.
const (
	codeNotFound     = "not_found"
	codeMethod       = "method_not_allowed"
	codeStarting     = "starting"
	codeStopping     = "stopping"
	codeInvalidRole  = "invalid_role"
	codeUnknownRole  = "unknown_role"
	codeRoleNeeded   = "role_needed"
	codeNoLeader     = "no_leader"
	codeDatabase     = "database"
	codeInvalidID    = "invalid_last_event_id"
	codeTooMany      = "too_many_streams"
	codeCrossOrigin  = "cross_origin"
	codeWritesOff    = "writes_off"
	codeUnauthorized = "unauthorized"
	codeViewer       = "viewer"
	codeToken        = "token_unusable"
	codeInvalidBody  = "invalid_body"
	codeTooLarge     = "body_too_large"
	codeMediaType    = "unsupported_media_type"
	codeNotLeader    = "not_leader"
	codeUnknownNode  = "unknown_node"
	codeNotCandidate = "not_candidate"
	codeTooLong      = "piece_too_long"
	codeLate         = "heartbeats_late"
	codeManyGuards   = "too_many_guards"
	codeAmbiguous    = "ambiguous_node"
	codeDeadNode     = "dead_node"
	codeLastNode     = "last_node"
	codeNoRegistry   = "no_registry"
	codeSessionLost  = "session_lost"
	codeGuessing     = "too_many_attempts"
	codeHost         = "unknown_host"

	codeNoWork           = "no_work"
	codeUnknownSchedule  = "unknown_schedule"
	codeUnknownRun       = "unknown_run"
	codeUnknownProcessor = "unknown_processor"
	codeInvalidQuery     = "invalid_query"
	codeInvalidSettings  = "invalid_settings"
	codeConflict         = "conflict"
)

// errorRecord is the body of a refusal.
type errorRecord struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, status int, code, message string) {
	var record errorRecord
	record.Error.Code, record.Error.Message = code, message
	answer(w, status, record)
}

// answer answers with a record as JSON.
func answer(w http.ResponseWriter, status int, record any) {
	body, err := json.Marshal(record)
	if err != nil {
		panic(err) // the records are texts, numbers and times
	}
	answerJSON(w, status, body)
}

// answerJSON answers with JSON. It ignores an error of writing, since the client is gone
// then.
func answerJSON(w http.ResponseWriter, status int, body []byte) {
	body = printable.JSON(body)
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(body[:len(body):len(body)], '\n'))
}
