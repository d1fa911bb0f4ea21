package main

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func (w *server) chat() *post { return newPost(w.host, "/v1/jobs", chatJob, w.h.o.body, true, 202) }

// idleCommand: one job at a time at a server that has nothing else to do; the time until its provider call arrives.
func idleCommand(o options) any {
	w := startWaybill(o, "idle")
	arrived := make(chan int64, 16)
	tell := func(text []byte) {
		if len(text) >= len(stampMark)+stampLen {
			arrived <- time.Now().UnixNano() - stampOf(text)
		}
	}
	c, err := dialHTTP(w.host)
	if err != nil {
		fatal("%v", err)
	}
	p, text := w.chat(), newText(o.body)
	var lat []int64
	end := time.Now().Add(seconds(3 * o.secs))
	for i := 0; time.Now().Before(end); i++ {
		if i == 50 { // warm by now
			w.provider.arrived.Store(&tell)
		}
		stamp(text)
		status, answer, err := c.do(p.with(text))
		if err != nil || status != 202 {
			fatal("idle: %d %.300s %v", status, answer, err)
		}
		if i >= 50 {
			select {
			case took := <-arrived:
				lat = append(lat, took)
			case <-time.After(10 * time.Second):
				fatal("idle: the provider's call never came")
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	cell := Cell{Peer: "waybill", Kind: "idle", Conc: 1, Ops: int64(len(lat))}
	cell.latencies(lat)
	say("%v", cell)
	return cell
}

// lifeCommand: each client submits a job and polls until it is completed; the server's own workers call the provider.
func lifeCommand(o options) any {
	var cells []Cell
	for _, conc := range o.conc {
		for range o.rounds {
			w := startWaybill(o, "life")
			cell := w.lives(conc)
			w.h.stop()
			say("%v", cell)
			cells = append(cells, cell)
		}
	}
	return cells
}

func (w *server) lives(conc int) Cell {
	c := Cell{Peer: "waybill", Kind: "life", Conc: conc}
	var conns []*httpConn
	for range conc {
		conn, err := dialHTTP(w.host)
		if err != nil {
			fatal("%v", err)
		}
		conns = append(conns, conn)
	}
	w.live(conns, 0.5)
	before, m := w.provider.calls.Load(), w.h.begin()
	lat, errs, last := w.live(conns, w.h.o.secs)
	c.Ops, c.Errors, c.Err = int64(len(lat)), errs, last
	m.finish(&c)
	c.latencies(lat)
	if called := w.provider.calls.Load() - before; called != c.Ops && c.Err == "" {
		c.Err = fmt.Sprintf("%d jobs completed, %d calls at the provider", c.Ops, called)
	}
	return c
}

func (w *server) live(conns []*httpConn, secs float64) (all []int64, errs int64, last string) {
	lats := make([][]int64, len(conns))
	var failed atomic.Int64
	var why atomic.Value
	var wg sync.WaitGroup
	end := time.Now().Add(seconds(secs))
	for i, conn := range conns {
		wg.Add(1)
		go func() {
			defer wg.Done()
			p, text := w.chat(), newText(w.h.o.body)
			poll := fmt.Appendf(nil, "GET /v1/jobs/%036d?wait=30 HTTP/1.1\r\nHost: %s\r\n\r\n", 0, w.host)
			idAt := bytes.Index(poll, []byte("/v1/jobs/")) + len("/v1/jobs/")
			for bad := 0; bad < 5; {
				t := time.Now()
				if t.After(end) {
					return
				}
				stamp(text)
				status, answer, err := conn.do(p.with(text))
				id, _ := field(answer, "id")
				if err == nil && status == 202 && len(id) == 36 {
					copy(poll[idAt:], id)
					if status, answer, err = conn.do(poll); err == nil && status == 200 && bytes.Contains(answer, []byte(`"status":"completed"`)) {
						lats[i] = append(lats[i], int64(time.Since(t)))
						continue
					}
				}
				bad++
				failed.Add(1)
				why.Store(fmt.Sprintf("%d %.300s %v", status, answer, err))
			}
		}()
	}
	wg.Wait()
	for _, l := range lats {
		all = append(all, l...)
	}
	if e := why.Load(); e != nil {
		last = e.(string)
	}
	return all, failed.Load(), last
}

type restartResult struct {
	Jobs   int       `json:"jobs"`
	Fill   float64   `json:"fill_per_s"`
	Ready  []float64 `json:"ready_ms"`  // after SIGTERM
	Killed []float64 `json:"killed_ms"` // after SIGKILL
	Empty  []float64 `json:"empty_ms"`  // a new store: what starting costs without jobs
	Memory float64   `json:"memory_mb"` // the most of all starts with jobs
}

// restartCommand: how long it takes until /ready answers 200, with very many jobs that wait.
func restartCommand(o options) any {
	w := startWaybill(o, "restart")
	out := restartResult{Jobs: o.jobs}
	again := func(how syscall.Signal) float64 {
		w.stop(how)
		begin := time.Now()
		if err := w.start(); err != nil {
			fatal("restart: %v\n%s", err, w.h.logTail())
		}
		return float64(time.Since(begin).Microseconds()) / 1000
	}
	for range o.rounds {
		out.Empty = append(out.Empty, again(syscall.SIGTERM))
	}
	_, out.Fill = w.fill(o.jobs, false)
	for range o.rounds {
		out.Ready = append(out.Ready, again(syscall.SIGTERM))
		time.Sleep(500 * time.Millisecond)
		out.Memory = max(out.Memory, w.memory("VmHWM"))
		out.Killed = append(out.Killed, again(syscall.SIGKILL))
		time.Sleep(500 * time.Millisecond)
		out.Memory = max(out.Memory, w.memory("VmHWM"))
	}
	say("restart with %d jobs: ready after %.0f ms, after a kill %.0f ms, empty %.0f ms; %.0f MB", o.jobs, out.Ready, out.Killed, out.Empty, out.Memory)
	return out
}
