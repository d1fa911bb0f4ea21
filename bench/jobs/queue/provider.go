package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
)

// provider answers every call at once, at the least cost, and tells who wants to know that it came. tests/mock_provider
// does as it is told and counts; this one only has to be quick.
type provider struct {
	address string
	calls   atomic.Int64
	arrived atomic.Pointer[func(text []byte)]
}

const completion = `{"id":"c","object":"chat.completion","created":1,"model":"mock","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`

func startProvider() *provider {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fatal("provider: %v", err)
	}
	p := &provider{address: l.Addr().String()}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *provider) serve(c net.Conn) {
	defer c.Close()
	answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(completion), completion)
	r := bufio.NewReaderSize(c, 8192)
	var body []byte
	for {
		length := 0
		for {
			line, err := r.ReadSlice('\n')
			if err != nil {
				return
			}
			if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
				break
			}
			if line[0]|0x20 == 'c' {
				if name, value, _ := bytes.Cut(line, []byte(":")); bytes.EqualFold(name, []byte("content-length")) {
					length, _ = strconv.Atoi(string(bytes.TrimSpace(value)))
				}
			}
		}
		if cap(body) < length {
			body = make([]byte, length)
		}
		body = body[:length]
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		p.calls.Add(1)
		if tell := p.arrived.Load(); tell != nil {
			if at := bytes.Index(body, []byte(stampMark+"0")); at >= 0 {
				(*tell)(body[at:])
			}
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}
