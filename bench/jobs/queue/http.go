package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// httpConn is a raw keep-alive connection: a tenth of net/http's CPU, so that the client does not set the limit.
type httpConn struct {
	c    net.Conn
	r    *bufio.Reader
	out  []byte
	body []byte
	host string
}

const patience = 90 * time.Second // for all that is sent over a connection of one cell

func dialHTTP(host string) (*httpConn, error) {
	h := &httpConn{host: host}
	return h, h.dial()
}

func (h *httpConn) dial() error {
	c, err := net.Dial("tcp", h.host)
	if err != nil {
		return err
	}
	_ = c.SetDeadline(time.Now().Add(patience))
	if h.r == nil {
		h.r = bufio.NewReaderSize(c, 4096)
	}
	h.c = c
	h.r.Reset(c)
	return nil
}

func (h *httpConn) Close() error { return h.c.Close() }

// do sends a request as it is and reads the answer; the body is valid until the next one.
func (h *httpConn) do(request []byte) (status int, body []byte, err error) {
	if _, err = h.c.Write(request); err == nil {
		var keep bool
		if status, keep, err = h.answer(); err == nil && keep {
			return status, h.body, nil
		}
	}
	h.c.Close()
	if again := h.dial(); err == nil {
		err = again
	}
	return status, h.body, err
}

func (h *httpConn) call(method, path, body string) (int, []byte, error) {
	h.out = fmt.Appendf(h.out[:0], "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, h.host, len(body), body)
	return h.do(h.out)
}

var errAnswer = errors.New("not an HTTP answer")

func (h *httpConn) answer() (status int, keep bool, err error) {
	line, err := h.r.ReadSlice('\n')
	if err != nil {
		return 0, false, err
	}
	if len(line) < 13 {
		return 0, false, errAnswer
	}
	status, _ = strconv.Atoi(string(line[9:12]))
	length, chunked := 0, false
	keep = true
	for {
		if line, err = h.r.ReadSlice('\n'); err != nil {
			return status, false, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		switch line[0] | 0x20 {
		case 'c', 't':
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimSpace(value)
			switch {
			case bytes.EqualFold(name, []byte("content-length")):
				length, _ = strconv.Atoi(string(value))
			case bytes.EqualFold(name, []byte("transfer-encoding")):
				chunked = true
			case bytes.EqualFold(name, []byte("connection")):
				keep = !bytes.EqualFold(value, []byte("close"))
			}
		}
	}
	h.body = h.body[:0]
	if !chunked {
		return status, keep, h.more(length)
	}
	for {
		if line, err = h.r.ReadSlice('\n'); err != nil {
			return status, false, err
		}
		size, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 64)
		if err != nil {
			return status, false, err
		}
		if err := h.more(int(size)); err != nil {
			return status, false, err
		}
		if _, err := h.r.Discard(2); err != nil || size == 0 {
			return status, keep, err
		}
	}
}

func (h *httpConn) more(n int) error {
	at := len(h.body)
	if cap(h.body) < at+n {
		h.body = append(make([]byte, 0, 2*(at+n)), h.body...)
	}
	h.body = h.body[:at+n]
	_, err := io.ReadFull(h.r, h.body[at:])
	return err
}

// A post is a request that is ready but for a job's text and its key.
type post struct {
	bytes         []byte
	textAt, keyAt int // -1: no key
	ok            int // the status of an acknowledgement
}

const keyLen = 32

// newPost: `body` has %s for the text.
func newPost(host, path, body string, textLen int, keyed bool, ok int) *post {
	text := newText(textLen)
	whole := fmt.Sprintf(body, text)
	p := &post{keyAt: -1, ok: ok}
	p.bytes = fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", path, host, len(whole))
	if keyed {
		p.bytes = append(p.bytes, "Idempotency-Key: "...)
		p.keyAt = len(p.bytes)
		p.bytes = append(p.bytes, newKey()...)
		p.bytes = append(p.bytes, "\r\n"...)
	}
	p.bytes = append(append(p.bytes, "\r\n"...), whole...)
	p.textAt = bytes.LastIndex(p.bytes, text)
	return p
}

func (p *post) with(text []byte) []byte {
	copy(p.bytes[p.textAt:], text)
	if p.keyAt >= 0 {
		putKey(p.bytes[p.keyAt : p.keyAt+keyLen])
	}
	return p.bytes
}

func putKey(to []byte) {
	const digits = "0123456789abcdef"
	for half := 0; half < keyLen; half += 16 {
		n := rand.Uint64()
		for i := range 16 {
			to[half+i] = digits[n>>(4*i)&15]
		}
	}
}

func newKey() string {
	b := make([]byte, keyLen)
	putKey(b)
	return string(b)
}

// The contract of all HTTP servers that are compared: a chat completion as a job.
const chatJob = `{"request":{"model":"mock","messages":[{"role":"user","content":"%s"}]}}`

// httpSession is a server that takes jobs over HTTP.
type httpSession struct {
	pool
	host, path, body string
	keyed            bool
	ok, textLen      int
	reset            func() error
}

func (s *httpSession) Reset() error {
	s.closeAll()
	return s.reset()
}

func (s *httpSession) Producer(int) (func([]byte) error, error) {
	c, err := dialHTTP(s.host)
	if err != nil {
		return nil, err
	}
	s.add(c)
	p := newPost(s.host, s.path, s.body, s.textLen, s.keyed, s.ok)
	return func(text []byte) error {
		status, body, err := c.do(p.with(text))
		if err == nil && status != p.ok {
			err = fmt.Errorf("status %d: %.200s", status, body)
		}
		return err
	}, nil
}

func (s *httpSession) Consume(context.Context, int, func([]byte)) error {
	return errors.New("this server only takes jobs")
}
