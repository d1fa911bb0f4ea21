package main

import (
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	never     = -1 // a fault position that is not set
	atHeaders = -2 // before the response head
)

// spec says how one call behaves: its shape, and its faults.
// Keys and meanings are documented in README.md.
type spec struct {
	// Shape: stays when the fault has used up its `times`.
	delay, ttft, itl, pingEvery time.Duration
	tokens, promptTokens, pad   int
	dims                        int
	usage, finish               string
	utf8, stamp, crlf           bool
	noDone, noRole, teClose     bool
	ping                        int
	splitBytes                  int
	splitUTF8                   bool
	drip                        time.Duration
	headPad                     int
	key                         string
	limit                       int
	tool                        bool

	// Faults.
	status                   int
	retryAfter, retryAfterMs string
	shouldRetry              string
	remaining, resetIn       string // of x-ratelimit-...-requests
	html, empty              bool
	hang, cut, reset         int
	malformed, errorAt       int
	errorStatus              int
	stale                    time.Duration
	times, pct               int
	unknown                  string
}

func defaultSpec() spec {
	return spec{tokens: 16, dims: 8, finish: "stop", status: 200, errorStatus: 500, pct: 100,
		hang: never, cut: never, reset: never, malformed: never, errorAt: never, stale: never}
}

func (s *spec) clearFaults() {
	d := defaultSpec()
	s.status, s.html, s.empty, s.stale = d.status, d.html, d.empty, d.stale
	s.hang, s.cut, s.reset, s.malformed, s.errorAt = never, never, never, never, never
}

var specs = struct {
	sync.Mutex
	parsed map[string]spec
	rules  map[string]string // provider ("" = all) -> standing spec
	used   map[string]int    // spec text -> calls seen, for times and pct
}{parsed: map[string]spec{}, rules: map[string]string{}, used: map[string]int{}}

// resolveSpec merges the sources, the later one winning: standing rule, model
// name, path, query, header.
func resolveSpec(provider, model, path, query, header string) (spec, string) {
	_, inModel, _ := strings.Cut(model, ";")
	specs.Lock()
	defer specs.Unlock()
	text := inModel
	if path != "" || query != "" || header != "" || len(specs.rules) > 0 {
		text = strings.Join([]string{specs.rules[""], specs.rules[provider], inModel, path, inQuery(query), header}, ";")
	}
	s, ok := specs.parsed[text]
	if !ok {
		s = parseSpec(text)
		if len(specs.parsed) > 10000 {
			specs.parsed = map[string]spec{}
		}
		specs.parsed[text] = s
	}
	if s.times > 0 || s.pct < 100 {
		n := specs.used[text]
		specs.used[text] = n + 1
		if (s.times > 0 && n >= s.times) || (n*s.pct/100 == (n+1)*s.pct/100 && s.pct < 100) {
			s.clearFaults()
		}
	}
	return s, text
}

// inQuery returns the value of the query parameter "mock", still escaped.
func inQuery(query string) string {
	for _, part := range strings.Split(query, "&") {
		if strings.HasPrefix(part, "mock=") {
			return part[len("mock="):]
		}
	}
	return ""
}

func parseSpec(text string) spec {
	s := defaultSpec()
	if strings.Contains(text, "%") {
		if t, err := url.PathUnescape(text); err == nil {
			text = t
		}
	}
	fields := strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == ',' })
	for _, f := range fields {
		key, value, _ := strings.Cut(strings.TrimSpace(f), "=")
		n, _ := strconv.Atoi(value)
		on := value != "0"
		ms := time.Duration(0)
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			ms = time.Duration(v * float64(time.Millisecond))
		}
		place := n // a token index, or one of two words
		switch value {
		case "headers":
			place = atHeaders
		case "first", "":
			place = 0
		}
		switch key {
		case "delay":
			s.delay = ms
		case "ttft":
			s.ttft = ms
		case "itl":
			s.itl = ms
		case "tokens":
			s.tokens = n
		case "prompt_tokens":
			s.promptTokens = n
		case "pad":
			s.pad = n
		case "dims":
			s.dims = n
		case "usage":
			s.usage = value
		case "finish":
			s.finish = value
		case "utf8":
			s.utf8 = on
		case "stamp":
			s.stamp = on
		case "crlf":
			s.crlf = on
		case "done":
			s.noDone = !on
		case "role":
			s.noRole = !on
		case "te":
			s.teClose = value == "close"
		case "ping":
			s.ping = n
		case "ping_ms":
			s.pingEvery = ms
		case "split":
			if value == "utf8" {
				s.splitUTF8, s.utf8 = true, true
			} else {
				s.splitBytes = n
			}
		case "drip":
			s.drip = ms
		case "head_pad":
			s.headPad = n
		case "key":
			s.key = value
		case "limit":
			s.limit = n
		case "status":
			s.status = n
		case "retry_after":
			s.retryAfter = value
		case "retry_after_ms":
			s.retryAfterMs = value
		case "should_retry":
			s.shouldRetry = value
		case "html":
			s.html = on
		case "empty":
			s.empty = on
		case "remaining":
			s.remaining = value
		case "reset_in":
			s.resetIn = value
		case "tool":
			s.tool = on
		case "hang":
			s.hang = place
		case "close":
			s.cut = place
		case "reset":
			s.reset = place
		case "malformed":
			s.malformed = place
		case "error_at":
			s.errorAt = place
		case "error_status":
			s.errorStatus = n
		case "stale":
			s.stale = ms
		case "times":
			s.times = n
		case "pct":
			s.pct = n
		case "id": // only makes the text unique, so that times and pct count apart
		default:
			s.unknown = key
		}
	}
	return s
}
