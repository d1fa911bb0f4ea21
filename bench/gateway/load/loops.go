package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	neturl "net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// openLoop sends requests at a fixed rate. A latency runs from the moment the
// request was due, so that a stalled gateway cannot hide its queue.
func openLoop() map[string]any {
	total := int(float64(*rate) * duration.Seconds())
	due := make(chan time.Time, total)
	var began time.Time
	r := drive(*duration+2*time.Second, func(c *client, record func(time.Duration, error)) {
		for at := range due {
			if time.Now().After(c.end) {
				record(0, errors.New("not sent in time"))
				continue
			}
			err := c.call()
			record(time.Since(at), err)
		}
	}, func() {
		runtime.LockOSThread() // sleeps of the runtime's own last a millisecond at least
		began = time.Now()
		for i := 0; i < total; {
			now := time.Since(began)
			for ; i < total && time.Duration(i)*time.Second/time.Duration(*rate) <= now; i++ {
				due <- began.Add(time.Duration(i) * time.Second / time.Duration(*rate))
			}
			syscall.Nanosleep(&syscall.Timespec{Nsec: 100_000}, nil)
		}
		close(due)
	})
	took := time.Since(began)
	if took < *duration {
		took = *duration
	}
	return map[string]any{"sent": total, "achieved": float64(len(r.latencies)) / took.Seconds(),
		"errors": total - len(r.latencies), "faults": r.faults, "latency_ms": quantiles(r.latencies)}
}

// closedLoop sends the next request when the last is answered. (wrk does too,
// but its percentiles are corrected for what it did not send meanwhile.)
func closedLoop() map[string]any {
	r := drive(*duration, func(c *client, record func(time.Duration, error)) {
		for at := time.Now(); at.Before(c.end); at = time.Now() {
			err := c.call()
			record(time.Since(at), err)
		}
	}, func() {})
	return map[string]any{"achieved": float64(len(r.latencies)) / duration.Seconds(), "faults": r.faults, "latency_ms": quantiles(r.latencies)}
}

type outcome struct {
	latencies []time.Duration
	faults    map[string]int
}

// drive connects all clients, lets each make one call to warm up, and then
// runs work on all of them, while pace runs beside. Plain sockets keep the
// generator's own cost at a few microseconds per request.
func drive(long time.Duration, work func(c *client, record func(time.Duration, error)), pace func()) outcome {
	target, err := neturl.Parse(*url)
	if err != nil {
		log.Fatal(err)
	}
	var request bytes.Buffer
	fmt.Fprintf(&request, "POST %s HTTP/1.1\r\nhost: %s\r\ncontent-length: %d\r\n", target.RequestURI(), target.Host, len(*body))
	for _, h := range headers {
		request.WriteString(h + "\r\n")
	}
	request.WriteString("\r\n" + *body)
	number := bytes.Index(request.Bytes(), []byte("#NUMBER#"))

	clients := make([]*client, *conns)
	for i := range clients {
		clients[i] = &client{host: target.Host, request: append([]byte(nil), request.Bytes()...), number: number, end: time.Now().Add(10 * time.Second)}
		clients[i].call()
	}
	end := time.Now().Add(long)
	var mu sync.Mutex
	all := outcome{faults: map[string]int{}}
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Add(1)
		c.end = end
		if c.conn != nil {
			c.conn.SetDeadline(end.Add(time.Second))
		}
		go func(c *client) {
			defer wg.Done()
			defer c.close()
			mine, faults := []time.Duration{}, map[string]int{}
			work(c, func(d time.Duration, err error) {
				if err != nil {
					faults[err.Error()]++
				} else {
					mine = append(mine, d)
				}
			})
			mu.Lock()
			defer mu.Unlock()
			all.latencies = append(all.latencies, mine...)
			for k, n := range faults {
				all.faults[k] += n
			}
		}(c)
	}
	pace()
	wg.Wait()
	return all
}

var calls atomic.Int64

// client is one keep-alive connection.
type client struct {
	host    string
	request []byte
	number  int // where eight digits of the request count the calls; -1: nowhere
	end     time.Time
	conn    net.Conn
	br      *bufio.Reader
}

func (c *client) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

func (c *client) call() (err error) {
	if c.conn == nil {
		if c.conn, err = net.DialTimeout("tcp", c.host, 5*time.Second); err != nil {
			return errors.New("connect")
		}
		c.conn.SetDeadline(c.end.Add(time.Second))
		c.br = bufio.NewReader(c.conn)
	}
	if c.number >= 0 {
		n := calls.Add(1)
		for i := c.number + 7; i >= c.number; i-- {
			c.request[i] = byte('0' + n%10)
			n /= 10
		}
	}
	keep := false
	if _, err = c.conn.Write(c.request); err == nil {
		keep, err = c.answer()
	}
	if err != nil || !keep {
		c.close()
	}
	return err
}

func (c *client) answer() (keep bool, err error) {
	line, err := c.br.ReadSlice('\n')
	if err != nil {
		return false, errors.New("no answer")
	}
	status := ""
	if len(line) > 12 {
		status = string(line[9:12])
	}
	length, keep := -1, true
	for {
		if line, err = c.br.ReadSlice('\n'); err != nil {
			return false, errors.New("cut head")
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		name, value, _ := strings.Cut(string(line), ":")
		switch strings.ToLower(name) {
		case "content-length":
			length, _ = strconv.Atoi(strings.TrimSpace(value))
		case "connection":
			keep = !strings.EqualFold(strings.TrimSpace(value), "close")
		}
	}
	if length >= 0 {
		_, err = c.br.Discard(length)
	} else {
		err = c.chunks()
	}
	if err != nil {
		return false, errors.New("cut body")
	}
	if status != "200" {
		return keep, errors.New("status " + status)
	}
	return keep, nil
}

func (c *client) chunks() error {
	for {
		line, err := c.br.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, c.br, int64(n)+2); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
	}
}
