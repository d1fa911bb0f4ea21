package main

import (
	"bytes"
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
