package leaderhttp

import (
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"github.com/exactly-one/tenure"
)

// The codes of errors, for programs.
const (
	codeNotLeader = "not_leader"
	codeNoLeader  = "no_leader"
	codeTooMany   = "too_many_waiting"
	codeForwarded = "already_forwarded"
	codeBroken    = "no_answer"
)

// retryAfter is the Retry-After of refused requests in seconds: the minimum, since
// the next leader may be ready immediately.
const retryAfter = "1"

type errorRecord struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
	Leader *leaderRecord `json:"leader"` // null if there is none
}

// leaderRecord has the names of the fields of the program tenure.
type leaderRecord struct {
	Term     int64             `json:"term"`
	Node     uuid.UUID         `json:"node"`
	NodeName string            `json:"node_name"`
	Host     string            `json:"hostname"`
	Address  string            `json:"address"`
	HTTPPort int               `json:"http_port"`
	GRPCPort int               `json:"grpc_port"`
	Labels   map[string]string `json:"labels"`
}

func newLeaderRecord(leader *tenure.Leader) *leaderRecord {
	if leader == nil {
		return nil
	}
	labels := leader.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	return &leaderRecord{
		Term: leader.Term, Node: leader.NodeID, NodeName: leader.NodeName, Host: leader.Host,
		Address: leader.Address, HTTPPort: leader.HTTPPort, GRPCPort: leader.GRPCPort, Labels: labels,
	}
}

// LeaderHeader is the HTTP address of the leader, in answers of other nodes.
const LeaderHeader = "Tenure-Leader"

// refuse answers an unhandled request, with the leader.
func (p *Proxy) refuse(w http.ResponseWriter, status int, code, message string) {
	record := errorRecord{Leader: newLeaderRecord(p.setLeader(w))}
	record.Error.Code, record.Error.Message = code, message
	if status != http.StatusBadGateway {
		w.Header().Set("Retry-After", retryAfter)
	}
	answer(w, status, record)
}

// setLeader sets the header with the leader's address and returns the leader.
func (p *Proxy) setLeader(w http.ResponseWriter) *tenure.Leader {
	leader := p.leader()
	if leader != nil {
		if address := p.config.Address(*leader); address != "" {
			w.Header().Set(LeaderHeader, address)
		}
	}
	return leader
}

func answer(w http.ResponseWriter, status int, record any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(record) // the client may have gone
}
