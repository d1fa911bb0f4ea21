package main

import (
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// outcome is how a call ended; every started call gets exactly one.
type outcome int

const (
	finished  outcome = iota // the whole 200 answer was written
	failed                   // a whole error answer was written
	cancelled                // the client hung up first
	aborted                  // the mock broke the connection, as the fault said
)

// tally counts the calls of one label.
type tally struct {
	Started   int64 `json:"started"`
	Finished  int64 `json:"finished"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"`
	Aborted   int64 `json:"aborted"`
	Billed    int64 `json:"billed"` // at least one token was produced
	Tokens    int64 `json:"tokens"`
	InFlight  int64 `json:"in_flight"`
	MaxFlight int64 `json:"max_in_flight"`
}

func (t *tally) begin() {
	t.Started++
	t.InFlight++
	if t.InFlight > t.MaxFlight {
		t.MaxFlight = t.InFlight
	}
}

func (t *tally) end(o outcome, tokens int) {
	t.InFlight--
	switch o {
	case finished:
		t.Finished++
	case failed:
		t.Failed++
	case cancelled:
		t.Cancelled++
	case aborted:
		t.Aborted++
	}
	if tokens > 0 {
		t.Billed++
		t.Tokens += int64(tokens)
	}
}

type tallies map[string]*tally

// maxLabels bounds the memory of a long run whose every call has its own id.
const maxLabels = 20000

// at returns nil for a label that came after the bound was reached.
func (m tallies) at(label string) *tally {
	t := m[label]
	if t == nil && len(m) < maxLabels {
		t = &tally{}
		m[label] = t
	}
	return t
}

type recorded struct {
	Time string `json:"time"`
	Line string `json:"line"`
	Head string `json:"head"`
	Body string `json:"body"`
}

type statistics struct {
	mu         sync.Mutex
	since      time.Time
	all        *tally
	byPath     tallies
	byProvider tallies
	byKey      tallies
	byRequest  tallies
	byStatus   map[int]int64
	requests   []recorded
	open       atomic.Int64
	opened     atomic.Int64
}

var stats = newStatistics()
var nextID atomic.Int64

func newStatistics() *statistics { s := &statistics{}; s.reset(); return s }

func (s *statistics) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.all, s.requests = time.Now(), &tally{}, nil
	s.byPath, s.byProvider, s.byKey, s.byRequest = tallies{}, tallies{}, tallies{}, tallies{}
	s.byStatus = map[int]int64{}
}

func (s *statistics) connections(delta int64) {
	s.open.Add(delta)
	if delta > 0 {
		s.opened.Add(delta)
	}
}

// labels returns the tallies that x counts in. The caller holds mu.
func (s *statistics) labels(x *exchange) [5]*tally {
	l := [5]*tally{s.all, s.byPath.at(x.path)}
	if x.provider != "" {
		l[2] = s.byProvider.at(x.provider)
	}
	if k := x.c.req.idempotencyKey; k != "" {
		l[3] = s.byKey.at(k)
	}
	if k := x.c.req.requestID; k != "" {
		l[4] = s.byRequest.at(k)
	}
	return l
}

func (x *exchange) begin(path string) {
	x.path = path
	stats.mu.Lock()
	x.labels = stats.labels(x)
	for _, t := range x.labels {
		if t != nil {
			t.begin()
		}
	}
	x.over = x.spec.limit > 0 && flightOf(x) > int64(x.spec.limit)
	stats.mu.Unlock()
}

func flightOf(x *exchange) int64 {
	if x.labels[2] != nil {
		return x.labels[2].InFlight
	}
	return x.labels[0].InFlight
}

func (x *exchange) end(o outcome) {
	stats.mu.Lock()
	for _, t := range x.labels {
		if t != nil {
			t.end(o, x.produced)
		}
	}
	stats.byStatus[x.sent]++
	stats.mu.Unlock()
}

func (s *statistics) remember(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(r.path, "/__") {
		return
	}
	if len(s.requests) >= *record {
		s.requests = s.requests[1:]
	}
	line := r.method + " " + r.path
	if r.query != "" {
		line += "?" + r.query
	}
	s.requests = append(s.requests, recorded{time.Now().Format(time.RFC3339Nano), line, string(r.head), string(r.body)})
}

// admin serves the mock's own pages.
func (c *conn) admin(path string) {
	s := stats
	var answer any = map[string]bool{"ok": true}
	switch path {
	case "/health":
	case "/__stats":
		s.mu.Lock()
		defer s.mu.Unlock()
		answer = map[string]any{
			"seconds": time.Since(s.since).Seconds(), "calls": s.all, "by_status": s.byStatus,
			"by_path": s.byPath, "by_provider": s.byProvider, "by_idempotency_key": s.byKey,
			"by_request_id": s.byRequest, "connections_open": s.open.Load(), "connections_opened": s.opened.Load(),
		}
	case "/__requests":
		s.mu.Lock()
		defer s.mu.Unlock()
		answer = s.requests
	case "/__reset":
		s.reset()
		specs.Lock()
		specs.used, specs.rules = map[string]int{}, map[string]string{}
		specs.Unlock()
	case "/__rule": // POST /__rule?provider=NAME&spec=SPEC, an empty spec removes it
		q, err := url.ParseQuery(strings.ReplaceAll(c.req.query, ";", "%3B"))
		if err != nil {
			c.reply(400, "text/plain", []byte(err.Error()))
			return
		}
		specs.Lock()
		if text := q.Get("spec"); text != "" {
			specs.rules[q.Get("provider")] = text
		} else {
			delete(specs.rules, q.Get("provider"))
		}
		specs.Unlock()
	default:
		c.reply(404, "text/plain", []byte("unknown page"))
		return
	}
	body, _ := json.MarshalIndent(answer, "", " ")
	c.reply(200, "application/json", append(body, '\n'))
}
