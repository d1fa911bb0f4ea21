package main

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

type depthResult struct {
	Jobs   int     `json:"jobs"`
	Fill   float64 `json:"fill_per_s"`
	Memory float64 `json:"memory_mb"` // of the full server, at most
	Cells  []Cell  `json:"cells"`     // peer: "empty" or "full"
}

// depthCommand: taking jobs and handing them out, at a server with very many jobs and at one with none, in turn.
func depthCommand(o options) any {
	full, empty := startWaybill(o, "full"), startWaybill(o, "empty")
	out := depthResult{Jobs: o.jobs}
	_, out.Fill = full.fill(o.jobs, false)
	say("%d jobs in calls of %d: %.0f/s", o.jobs, batch, out.Fill)
	for range o.rounds {
		for _, kind := range []string{"submit", "claim"} {
			for _, w := range []*server{empty, full} {
				c := w.takes(kind)
				c.Peer = map[bool]string{true: "full", false: "empty"}[w == full]
				say("%v", c)
				out.Cells = append(out.Cells, c)
			}
		}
	}
	out.Memory = full.memory("VmHWM")
	say("full: %.0f MB", out.Memory)
	return out
}

// takes is one cell of 64 clients that submit, or of 16 that lease 16 jobs a call. What was submitted is there to be claimed.
func (w *server) takes(kind string) Cell {
	c := Cell{Kind: kind, Conc: 64}
	if kind == "submit" {
		s := httpSession{host: w.host, path: "/v1/jobs", body: outsideJob, keyed: true, ok: 202, textLen: w.h.o.body}
		defer s.closeAll()
		fns, err := producers(&s, c.Conc)
		if err != nil {
			fatal("%v", err)
		}
		return closedLoop(w.h, c, fns, w.h.o.secs)
	}
	c.Conc = 16
	var taken, calls atomic.Int64
	var wg sync.WaitGroup
	m := w.h.begin()
	end := time.Now().Add(seconds(w.h.o.secs / 2)) // shorter: there must be enough to claim
	for range c.Conc {
		conn, err := dialHTTP(w.host)
		if err != nil {
			fatal("%v", err)
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer conn.Close()
			for time.Now().Before(end) {
				answer, err := w.lease(conn, 16, 0)
				if err != nil {
					fatal("claim: %v", err)
				}
				got := bytes.Count(answer, []byte(`"token":"`))
				if got == 0 {
					return // empty
				}
				taken.Add(int64(got))
				calls.Add(1)
			}
		}()
	}
	wg.Wait()
	c.Ops = taken.Load()
	m.finish(&c)
	return c
}

type waitingResult struct {
	Waiting int     `json:"waiting"`
	Idle    float64 `json:"idle_mb"`   // before they came
	Memory  float64 `json:"memory_mb"` // at most
	Cell    Cell    `json:"cell"`      // from the call that completes a job until its client has the answer
}

// waitingCommand: very many long polls, each for a job of its own, of which some end each second; a client that has its
// answer waits for another job.
func waitingCommand(o options) any {
	w := startWaybill(o, "waiting")
	out := waitingResult{Waiting: o.waiting, Idle: w.memory("VmRSS")}
	secs := 3 * o.secs
	ends := int(secs * float64(o.perSecond))
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
			for mine := i; mine < len(ids) && !over.Load(); {
				_ = conn.c.SetDeadline(time.Now().Add(patience))
				asked.Add(1)
				status, answer, err := conn.call("GET", "/v1/jobs/"+ids[mine]+"?wait=60", "")
				now := time.Now().UnixNano()
				if over.Load() {
					return
				}
				if err != nil || status != 200 {
					if errs.Add(1) == 1 {
						say("waiting: %d %.200s %v", status, answer, err)
					}
					return
				}
				if !bytes.Contains(answer, []byte(`"status":"completed"`)) {
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
	m := w.h.begin()
	begin := time.Now()
	w.completeSteadily(ends, o.perSecond, place, completed)
	took := time.Since(begin)
	time.Sleep(500 * time.Millisecond)
	over.Store(true)
	mu.Lock()
	out.Cell = Cell{Peer: "waybill", Kind: "waiting", Conc: o.waiting, Ops: int64(len(lat)), Errors: errs.Load()}
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
	say("%v\nwaiting: %.0f MB, before %.0f MB", out.Cell, out.Memory, out.Idle)
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
