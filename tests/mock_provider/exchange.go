package main

import (
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"
)

// exchange is one call in progress, owned by its connection's goroutine.
type exchange struct {
	c        *conn
	in       input
	spec     spec
	specText string
	provider string
	path     string
	id       int64
	started  time.Time
	labels   [5]*tally
	over     bool // the provider already had `limit` calls in flight
	sent     int  // status that went out
	produced int  // tokens
	chunked  bool
	gone     chan struct{} // closed when the client hangs up; nil while nobody watches
	unwatch  func()
	broken   bool // a write failed
}

// dialect is one provider's wire format. Each method appends to b.
type dialect interface {
	streamType() string
	open(b []byte, x *exchange) []byte                      // frames before the first token
	token(b []byte, x *exchange, text []byte, i int) []byte // one token
	finish(b []byte, x *exchange) []byte                    // frames after the last token
	ping(b []byte, x *exchange) []byte                      // keep-alive noise
	broken(b []byte, x *exchange) []byte                    // a frame with malformed JSON
	whole(b []byte, x *exchange, text []byte) []byte        // the non-streamed answer
	errorBody(b []byte, x *exchange, status int, message string) []byte
	errorFrame(b []byte, x *exchange, status int) []byte
}

// chat runs one chat call through its faults, in the order they can happen.
func (x *exchange) chat(d dialect) outcome {
	s := &x.spec
	if s.slow() {
		x.watch()
		defer func() { x.unwatch() }()
	}
	if s.tool && s.finish == "stop" {
		s.finish = "tool_calls"
	}
	switch {
	case s.unknown != "":
		return x.fail(d, 400, "mock: unknown fault key "+s.unknown)
	case s.key != "" && x.c.req.auth != s.key:
		return x.fail(d, 401, "Incorrect API key provided")
	case x.over:
		return x.fail(d, 429, "mock: more calls in flight than this provider allows")
	case !x.sleep(s.delay):
		return cancelled
	case s.hang == atHeaders:
		return x.hang()
	case s.reset == atHeaders || s.cut == atHeaders:
		return x.cut(s.reset == atHeaders)
	case s.status != 200:
		return x.fail(d, s.status, "mock: injected status "+strconv.Itoa(s.status))
	case s.empty:
		return x.nothing(d)
	case x.in.stream:
		return x.streamed(d)
	}
	return x.whole(d)
}

// slow tells whether the call waits anywhere, so that a hang-up must be noticed.
func (s *spec) slow() bool {
	return s.delay > 0 || s.ttft > 0 || s.itl > 0 || s.drip > 0 || s.hang != never || s.splitBytes > 0 || s.splitUTF8
}

func (x *exchange) tokens() int {
	if n := x.in.maxTokens; n > 0 && n < x.spec.tokens {
		return n
	}
	return x.spec.tokens
}

func (x *exchange) finishReason() string {
	if n := x.in.maxTokens; n > 0 && n < x.spec.tokens {
		return "length"
	}
	return x.spec.finish
}

func (x *exchange) promptTokens() int {
	if x.spec.promptTokens > 0 {
		return x.spec.promptTokens
	}
	return x.in.bytes/4 + 1
}

var foreign = [...]string{"é", "€", "😀", "漢字"}

// text appends token i: "w<i> ", so that a test can see a lost or doubled one.
func (x *exchange) text(b []byte, i int) []byte {
	if x.spec.stamp {
		b = append(b, "t="...)
		b = strconv.AppendInt(b, time.Now().UnixNano(), 10)
	} else {
		b = append(b, 'w')
		b = strconv.AppendInt(b, int64(i), 10)
	}
	if x.spec.utf8 {
		b = append(b, foreign[i%len(foreign)]...)
	}
	b = append(b, ' ')
	for n := x.spec.pad; n > 0; n-- {
		b = append(b, 'x')
	}
	return b
}

func (x *exchange) streamed(d dialect) outcome {
	s, c := &x.spec, x.c
	var frame, text []byte
	x.chunked = !s.teClose
	x.sent = 200
	c.out = x.head(c.out[:0], 200, d.streamType(), -1)
	waits := s.slow()
	if waits && !x.flush() {
		return cancelled
	}
	if !x.firstToken(d) {
		return cancelled
	}
	if o, stop := x.interrupt(d, 0); stop { // a fault at 0 comes before any frame
		return o
	}
	x.emit(d.open(frame[:0], x))
	first := time.Now()
	for i := 0; i < x.tokens(); i++ {
		if i > 0 && s.itl > 0 && !x.sleep(time.Until(first.Add(time.Duration(i)*s.itl))) {
			return cancelled
		}
		if i > 0 {
			if o, stop := x.interrupt(d, i); stop {
				return o
			}
		}
		if s.ping > 0 && i%s.ping == 0 {
			x.emit(d.ping(frame[:0], x))
		}
		text = x.text(text[:0], i)
		frame = d.token(frame[:0], x, text, i)
		x.produced++
		x.emit(frame)
		if s.malformed == i {
			x.emit(d.broken(frame[:0], x))
		}
		if (s.itl > 0 || len(c.out) > 32<<10) && !x.flush() {
			return cancelled
		}
	}
	if o, stop := x.interrupt(d, x.tokens()); stop {
		return o
	}
	x.emit(d.finish(frame[:0], x))
	return x.finishStream()
}

// firstToken waits for the time to the first token, with keep-alive comments if asked.
func (x *exchange) firstToken(d dialect) bool {
	left := x.spec.ttft
	for every := x.spec.pingEvery; every > 0 && left > every; left -= every {
		if !x.sleep(every) {
			return false
		}
		x.emit(d.ping(nil, x))
		if !x.flush() {
			return false
		}
	}
	return x.sleep(left)
}

// interrupt applies the faults that strike before token i.
func (x *exchange) interrupt(d dialect, i int) (outcome, bool) {
	s := &x.spec
	switch i {
	case s.hang, s.cut, s.reset:
		if !x.flush() {
			return cancelled, true
		}
		if i == s.hang {
			return x.hang(), true
		}
		return x.cut(i == s.reset), true
	case s.errorAt:
		x.emit(d.errorFrame(nil, x, s.errorStatus))
		if o := x.finishStream(); o != finished {
			return o, true
		}
		return failed, true
	}
	return 0, false
}

func (x *exchange) finishStream() outcome {
	if x.chunked {
		x.c.out = append(x.c.out, "0\r\n\r\n"...)
	}
	if !x.flush() {
		return cancelled
	}
	return finished
}

// nothing answers 200 and ends the body, or the stream, without a byte in it.
func (x *exchange) nothing(d dialect) outcome {
	x.sent = 200
	if x.in.stream {
		x.chunked = true
		x.c.out = x.head(x.c.out[:0], 200, d.streamType(), -1)
		return x.finishStream()
	}
	x.c.out = x.head(x.c.out[:0], 200, "application/json", 0)
	if !x.flush() {
		return cancelled
	}
	return finished
}

func (x *exchange) whole(d dialect) outcome {
	s := &x.spec
	n := x.tokens()
	wait := s.ttft
	if n > 1 {
		wait += time.Duration(n-1) * s.itl
	}
	if !x.sleep(wait) {
		return cancelled
	}
	if s.hang != never {
		return x.hang()
	}
	var text [512]byte
	t := text[:0]
	for i := 0; i < n; i++ {
		t = x.text(t, i)
	}
	x.produced = n
	var buf [2048]byte
	body := d.whole(buf[:0], x, t)
	if s.malformed != never {
		body = body[:len(body)*2/3]
	}
	x.sent = 200
	c := x.c
	size := len(body)
	if s.teClose {
		size = -1
	}
	c.out = x.head(c.out[:0], 200, "application/json", size)
	if s.cut != never || s.reset != never {
		c.out = append(c.out, body[:len(body)/2]...)
		if !x.flush() {
			return cancelled
		}
		return x.cut(s.reset != never)
	}
	if s.drip > 0 {
		if !x.flush() || !x.pieces(body) {
			return cancelled
		}
		return finished
	}
	c.out = append(c.out, body...)
	if !x.flush() {
		return cancelled
	}
	return finished
}

// fail writes an error answer in the caller's dialect.
func (x *exchange) fail(d dialect, status int, message string) outcome {
	if d == nil {
		d = openai{}
	}
	kind, body := "application/json", d.errorBody(nil, x, status, message)
	if x.spec.html {
		kind, body = "text/html", []byte("<html><body><h1>"+http.StatusText(status)+"</h1></body></html>\n")
	}
	x.sent = status
	c := x.c
	c.out = append(x.head(c.out[:0], status, kind, len(body)), body...)
	if !x.flush() {
		return cancelled
	}
	return failed
}

// head appends the response head; length < 0 means a body of unknown length.
func (x *exchange) head(b []byte, status int, kind string, length int) []byte {
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	reason := http.StatusText(status)
	if status == 529 {
		reason = "Overloaded"
	}
	b = append(append(b, reason...), "\r\ncontent-type: "...)
	b = append(append(b, kind...), "\r\nx-request-id: req_"...)
	b = strconv.AppendInt(b, x.id, 10)
	s := &x.spec
	switch {
	case length >= 0:
		b = append(b, "\r\ncontent-length: "...)
		b = strconv.AppendInt(b, int64(length), 10)
	case x.chunked:
		b = append(b, "\r\ncache-control: no-cache\r\ntransfer-encoding: chunked"...)
	default:
		b = append(b, "\r\nconnection: close"...)
	}
	if status != 200 {
		b = field(b, "retry-after", s.retryAfter)
		b = field(b, "retry-after-ms", s.retryAfterMs)
		b = field(b, "x-should-retry", s.shouldRetry)
	}
	b = field(b, "x-ratelimit-remaining-requests", s.remaining)
	b = field(b, "x-ratelimit-reset-requests", s.resetIn)
	if s.headPad > 0 {
		b = append(b, "\r\nx-pad: "...)
		for n := s.headPad; n > 0; n-- {
			b = append(b, 'h')
		}
	}
	return append(b, "\r\n\r\n"...)
}

func field(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	return append(append(append(append(b, "\r\n"...), name...), ": "...), value...)
}

// emit queues one frame, or writes it at once in pieces if the fault says so.
func (x *exchange) emit(frame []byte) {
	switch {
	case len(frame) == 0 || x.broken:
	case x.spec.drip > 0 || x.spec.splitBytes > 0 || x.spec.splitUTF8:
		x.broken = !x.flush() || !x.pieces(frame)
	default:
		x.c.out = x.chunk(x.c.out, frame)
	}
}

func (x *exchange) chunk(b, data []byte) []byte {
	if !x.chunked {
		return append(b, data...)
	}
	b = strconv.AppendInt(b, int64(len(data)), 16)
	b = append(append(append(b, "\r\n"...), data...), "\r\n"...)
	return b
}

// pieces writes data in several segments, with a pause so that they stay apart.
func (x *exchange) pieces(data []byte) bool {
	pause := x.spec.drip
	if pause < 500*time.Microsecond {
		pause = 500 * time.Microsecond
	}
	for len(data) > 0 {
		n := 1
		switch {
		case x.spec.drip > 0:
		case x.spec.splitBytes > 0:
			if n = x.spec.splitBytes; n > len(data) {
				n = len(data)
			}
		default: // up to the middle of the next multi-byte character
			for n < len(data) && utf8.RuneStart(data[n]) {
				n++
			}
		}
		x.c.out = x.chunk(x.c.out, data[:n])
		data = data[n:]
		if !x.flush() || (len(data) > 0 && !x.sleep(pause)) {
			return false
		}
	}
	return true
}

func (x *exchange) flush() bool {
	c := x.c
	if x.broken || len(c.out) == 0 {
		return !x.broken
	}
	_, err := c.tcp.Write(c.out)
	c.out = c.out[:0]
	x.broken = err != nil
	return !x.broken
}

// watch notices a client that hangs up while this goroutine does not read.
func (x *exchange) watch() {
	c, gone, done := x.c, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if _, err := c.br.Peek(1); err != nil {
			close(gone) // also at the deadline that unwatch sets; nobody looks then
		}
	}()
	x.gone = gone
	x.unwatch = func() {
		c.tcp.SetReadDeadline(time.Unix(1, 0))
		<-done
		c.tcp.SetReadDeadline(time.Time{})
	}
}

// sleep returns false if the client hung up meanwhile.
func (x *exchange) sleep(d time.Duration) bool {
	if d <= 0 {
		return !x.broken
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return !x.broken
	case <-x.gone:
		return false
	}
}

// hang waits until the client gives up.
func (x *exchange) hang() outcome {
	x.flush()
	x.sleep(time.Hour)
	return cancelled
}

// cut drops the connection: with FIN, or with RST.
func (x *exchange) cut(hard bool) outcome {
	if hard {
		x.c.tcp.SetLinger(0)
	}
	x.c.tcp.Close()
	return aborted
}

// reply answers a page that is not a call.
func (c *conn) reply(status int, kind string, body []byte) {
	x := exchange{c: c}
	c.out = append(x.head(c.out[:0], status, kind, len(body)), body...)
	x.flush()
}
