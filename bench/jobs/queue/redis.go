package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// resp is a minimal Redis connection: cheap, so that the client does not set the limit.
type resp struct {
	c net.Conn
	r *bufio.Reader
	w *bufio.Writer
}

func dialResp(addr string) (*resp, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &resp{c, bufio.NewReader(c), bufio.NewWriter(c)}, nil
}

func (r *resp) send(args ...string) {
	fmt.Fprintf(r.w, "*%d\r\n", len(args))
	for _, a := range args {
		r.w.WriteByte('$')
		r.w.WriteString(strconv.Itoa(len(a)))
		r.w.WriteString("\r\n")
		r.w.WriteString(a)
		r.w.WriteString("\r\n")
	}
}

func (r *resp) read() (any, error) {
	line, err := r.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	switch line[0] {
	case '+':
		return line[1:], nil
	case '-':
		return nil, errors.New(line[1:])
	case ':':
		return strconv.ParseInt(line[1:], 10, 64)
	case '$':
		n, _ := strconv.Atoi(line[1:])
		if n < 0 {
			return nil, nil
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r.r, b); err != nil {
			return nil, err
		}
		return string(b[:n]), nil
	case '*':
		n, _ := strconv.Atoi(line[1:])
		if n < 0 {
			return nil, nil
		}
		out := make([]any, n)
		for i := range out {
			if out[i], err = r.read(); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("bad reply %q", line)
}

func (r *resp) do(args ...string) (any, error) {
	r.send(args...)
	if err := r.w.Flush(); err != nil {
		return nil, err
	}
	return r.read()
}

// pool closes connections that a session made.
type pool struct {
	mu    sync.Mutex
	close []io.Closer
}

func (p *pool) add(c io.Closer) { p.mu.Lock(); p.close = append(p.close, c); p.mu.Unlock() }
func (p *pool) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.close {
		c.Close()
	}
	p.close = nil
}

func startRedis(h *Host) (addr string, err error) {
	port := freePort()
	addr = "127.0.0.1:" + port
	if err = h.server(proc{}, "redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", h.dir, "--appendonly", "yes",
		"--appendfsync", "always", "--save", "", "--auto-aof-rewrite-percentage", "0", "--maxmemory-policy", "noeviction"); err != nil {
		return
	}
	return addr, waitTCP(addr, 10*time.Second)
}

func redisPeer(kind string) Peer {
	return Peer{Name: "redis-" + kind, Note: "native protocol, appendfsync always", Start: func(h *Host) (Session, error) {
		addr, err := startRedis(h)
		s := &redisSession{addr: addr, stream: kind == "stream"}
		h.closers = append(h.closers, s.closeAll)
		return s, err
	}}
}

type redisSession struct {
	pool
	addr   string
	stream bool
}

func (s *redisSession) dial() (*resp, error) {
	r, err := dialResp(s.addr)
	if err == nil {
		s.add(r.c)
	}
	return r, err
}

func (s *redisSession) Reset() error {
	s.closeAll()
	r, err := s.dial()
	if err != nil {
		return err
	}
	if _, err = r.do("FLUSHALL"); err == nil && s.stream {
		_, err = r.do("XGROUP", "CREATE", "q", "g", "0", "MKSTREAM")
	}
	return err
}

func (s *redisSession) Producer(int) (func([]byte) error, error) {
	r, err := s.dial()
	if err != nil {
		return nil, err
	}
	return func(b []byte) error {
		var err error
		if s.stream {
			_, err = r.do("XADD", "q", "*", "b", string(b))
		} else {
			_, err = r.do("LPUSH", "q", string(b))
		}
		return err
	}, nil
}

func (s *redisSession) Consume(ctx context.Context, n int, done func([]byte)) error {
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		r, err := s.dial()
		if err != nil {
			return err
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			for ctx.Err() == nil {
				if err := s.one(r, strconv.Itoa(i), done); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

func (s *redisSession) one(r *resp, me string, done func([]byte)) error {
	if s.stream {
		v, err := r.do("XREADGROUP", "GROUP", "g", me, "COUNT", "1", "BLOCK", "100", "STREAMS", "q", ">")
		if err != nil || v == nil {
			return err
		}
		entry := v.([]any)[0].([]any)[1].([]any)[0].([]any)
		id, body := entry[0].(string), entry[1].([]any)[1].(string)
		r.send("XACK", "q", "g", id)
		r.send("XDEL", "q", id)
		if err := r.w.Flush(); err != nil {
			return err
		}
		for range 2 {
			if _, err := r.read(); err != nil {
				return err
			}
		}
		done([]byte(body))
		return nil
	}
	v, err := r.do("BLMOVE", "q", "busy"+me, "RIGHT", "LEFT", "0.1")
	if err != nil || v == nil {
		return err
	}
	if _, err := r.do("LREM", "busy"+me, "1", v.(string)); err != nil {
		return err
	}
	done([]byte(v.(string)))
	return nil
}

func redisEmptied(addr string) func() error {
	return func() error {
		r, err := dialResp(addr)
		if err == nil {
			_, err = r.do("FLUSHALL")
			r.c.Close()
		}
		return err
	}
}
