package main

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

type waitingResult struct {
	How     string  `json:"how"`
	Waiting int     `json:"waiting"`
	Idle    float64 `json:"idle_mb"`   // before they came
	Memory  float64 `json:"memory_mb"` // at most
	Cell    Cell    `json:"cell"`      // from the call that completes a job until its client knows
}

// A waiter waits until a job is completed, over a connection of its own.
type waiter func(id string) (completed bool, err error)

func poller(c *httpConn) waiter {
	return func(id string) (bool, error) {
		status, answer, err := c.call("GET", "/v1/jobs/"+id+"?wait=60", "")
		if err == nil && status != 200 {
			err = fmt.Errorf("%d %.200s", status, answer)
		}
		return bytes.Contains(answer, completedMark), err
	}
}

var completedMark = []byte(`"status":"completed"`)

// waitingCommand: very many clients, each waits for a job of its own, of which some end each second; a client that knows
// of the end waits for another job. By long polls, then by WebSockets.
func waitingCommand(o options) any {
	return []waitingResult{waiting(o, "long polls", poller), waiting(o, "WebSockets", listener)}
}

func waiting(o options, how string, join func(*httpConn) waiter) waitingResult {
	w := startWaybill(o, "waiting")
	defer w.h.stop()
	out := waitingResult{How: how, Waiting: o.waiting, Idle: w.memory("VmRSS")}
	ends := int(3 * o.secs * float64(o.perSecond))
	ids, _ := w.fill((o.waiting+2*ends)/batch*batch+batch, true)
	place := make(map[string]int, len(ids)) // of an id, in order
	for i, id := range ids {
		place[id] = i
	}
	completed := make([]atomic.Int64, len(ids)) // when
	var mu sync.Mutex
	var lat []int64
	var next, asked, errs atomic.Int64
	next.Store(int64(o.waiting))
	var over atomic.Bool
	conns := make([]*httpConn, o.waiting)
	var wg sync.WaitGroup
	for i := range conns {
		conn, err := dialHTTP(w.host)
		if err != nil {
			fatal("connection %d: %v", i, err)
		}
		conns[i] = conn
		wg.Add(1)
		go func() {
			defer wg.Done()
			wait := join(conn)
			for mine := i; mine < len(ids) && !over.Load(); {
				_ = conn.c.SetDeadline(time.Now().Add(patience))
				asked.Add(1)
				ended, err := wait(ids[mine])
				now := time.Now().UnixNano()
				if over.Load() {
					return
				}
				if err != nil {
					if errs.Add(1) == 1 {
						say("waiting: %v", err)
					}
					return
				}
				if !ended {
					continue // it asks again
				}
				mu.Lock()
				lat = append(lat, now-completed[mine].Load())
				mu.Unlock()
				mine = int(next.Add(1) - 1)
			}
		}()
	}
	for asked.Load() < int64(o.waiting) {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(2 * time.Second) // the last of them have arrived
	m, begin := w.h.begin(), time.Now()
	w.completeSteadily(ends, o.perSecond, place, completed)
	took := time.Since(begin)
	time.Sleep(500 * time.Millisecond)
	over.Store(true)
	mu.Lock()
	out.Cell = Cell{Peer: "waybill", Kind: how, Conc: o.waiting, Ops: int64(len(lat)), Errors: errs.Load()}
	m.finish(&out.Cell)
	out.Cell.PerSec = float64(len(lat)) / took.Seconds()
	out.Cell.latencies(lat)
	mu.Unlock()
	if missing := int64(ends) - out.Cell.Ops; missing > 0 {
		out.Cell.Err = fmt.Sprintf("%d of %d were not told", missing, ends)
	}
	out.Memory = w.memory("VmHWM")
	for _, conn := range conns {
		conn.Close()
	}
	wg.Wait()
	say("%v\n%s: %.0f MB, before %.0f MB", out.Cell, how, out.Memory, out.Idle)
	return out
}

// completeSteadily plays eight workers elsewhere, which together complete n jobs at this rate.
func (w *server) completeSteadily(n, perSecond int, place map[string]int, completed []atomic.Int64) {
	work := make(chan string, 4096)
	var wg sync.WaitGroup
	for range 8 {
		c, err := dialHTTP(w.host)
		if err != nil {
			fatal("%v", err)
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer c.Close()
			for token := range work {
				completed[place[token[:36]]].Store(time.Now().UnixNano())
				if err := w.complete(c, token); err != nil {
					fatal("waiting: %v", err)
				}
			}
		}()
	}
	c, err := dialHTTP(w.host)
	if err != nil {
		fatal("%v", err)
	}
	defer c.Close()
	begin := time.Now()
	for done := 0; done < n; {
		answer, err := w.lease(c, min(50, n-done), 1)
		if err != nil {
			fatal("waiting: %v", err)
		}
		for _, token := range tokens(answer) {
			time.Sleep(time.Until(begin.Add(time.Duration(done) * time.Second / time.Duration(perSecond))))
			work <- token
			done++
		}
	}
	close(work)
	wg.Wait()
}
