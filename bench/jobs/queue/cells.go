package main

import (
	"context"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Peer is a queue that can be started here.
type Peer struct {
	Name, Note string
	Keyed      bool // over HTTP, with the Idempotency-Key checked
	Start      func(*Host) (Session, error)
}

// Session is a running peer.
type Session interface {
	// Producer returns a function that returns once the job is acknowledged.
	Producer(i int) (func(text []byte) error, error)
	// Consume runs n consumers until ctx ends; done is called after the job's own acknowledgement.
	Consume(ctx context.Context, n int, done func(text []byte)) error
	Reset() error // an empty queue
}

// A selfLoader brings its own load client (a library of another language).
type selfLoader interface {
	// Load calls begin and end around its measured window.
	Load(kind string, conc int, begin, end func()) (ops int64, secs float64, lat []int64, err error)
}

// Cell is one measurement.
type Cell struct {
	Peer    string  `json:"peer"`
	Kind    string  `json:"kind"`
	Conc    int     `json:"conc"` // clients, consumers, or the rate planned
	PerSec  float64 `json:"per_s"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
	Max     float64 `json:"max_ms"`
	Server  float64 `json:"server_us"` // CPU of the peer's processes a job
	Client  float64 `json:"client_us"` // of this program
	Flushes float64 `json:"flushes"`   // of the disk's cache, a job
	Foreign float64 `json:"foreign"`   // cores that other programs used meanwhile
	Ops     int64   `json:"ops"`
	Errors  int64   `json:"errors"`
	Err     string  `json:"error,omitempty"`
}

func (c Cell) String() string {
	if c.Err != "" {
		return fmt.Sprintf("%-16s %-8s %5d  failed: %s", c.Peer, c.Kind, c.Conc, c.Err)
	}
	return fmt.Sprintf("%-16s %-8s %5d %8.0f/s  p50 %7.2f  p99 %7.2f  max %7.1f ms  server %4.0f us  client %3.0f us  flushes %.3f  foreign %.2f  errors %d",
		c.Peer, c.Kind, c.Conc, c.PerSec, c.P50, c.P99, c.Max, c.Server, c.Client, c.Flushes, c.Foreign, c.Errors)
}

func (c *Cell) latencies(lat []int64) {
	if len(lat) == 0 {
		return
	}
	sort.Slice(lat, func(i, j int) bool { return lat[i] < lat[j] })
	q := func(p float64) float64 { return float64(lat[min(len(lat)-1, int(p*float64(len(lat))))]) / 1e6 }
	c.P50, c.P99, c.Max = q(.5), q(.99), float64(lat[len(lat)-1])/1e6
}

// A job's text has the time of sending at a fixed place, so that whoever gets it can tell how long it took. Nothing in
// it needs an escape, in JSON or in a URL.
const stampMark, stampLen = "t-", 20

func newText(n int) []byte {
	return []byte(stampMark + strings.Repeat("0", stampLen) + "-" + strings.Repeat("x", max(1, n-stampLen-3)))
}

func stamp(text []byte) {
	n := time.Now().UnixNano()
	for i := len(stampMark) + stampLen - 1; i >= len(stampMark); i-- {
		text[i] = byte('0' + n%10)
		n /= 10
	}
}

func stampOf(text []byte) int64 {
	if len(text) < len(stampMark)+stampLen {
		return 0
	}
	n, _ := strconv.ParseInt(string(text[len(stampMark):len(stampMark)+stampLen]), 10, 64)
	return n
}

func producers(s Session, n int) (fns []func([]byte) error, err error) {
	for i := range n {
		f, err := s.Producer(i)
		if err != nil {
			return nil, err
		}
		fns = append(fns, f)
	}
	return
}

// enqueueCell: n clients in a closed loop, each waits for its acknowledgement.
func enqueueCell(h *Host, s Session, n int) (Cell, error) {
	c := Cell{Kind: "enqueue", Conc: n}
	if own, ok := s.(selfLoader); ok {
		return h.selfCell(c, own)
	}
	fns, err := producers(s, n)
	if err != nil {
		return c, err
	}
	closedLoop(h, Cell{}, fns, 0.2) // to warm up
	c = closedLoop(h, c, fns, h.o.secs)
	if c.Ops == 0 {
		return c, fmt.Errorf("no job was acknowledged: %s", c.Err)
	}
	c.Err = ""
	return c, nil
}

func closedLoop(h *Host, c Cell, fns []func([]byte) error, secs float64) Cell {
	lats := make([][]int64, len(fns))
	var errs, last = atomic.Int64{}, atomic.Value{}
	var wg sync.WaitGroup
	m := h.begin()
	end := time.Now().Add(seconds(secs))
	for i := range fns {
		wg.Add(1)
		go func() {
			defer wg.Done()
			text := newText(h.o.body)
			for bad := 0; bad < 20; {
				t := time.Now()
				if t.After(end) {
					return
				}
				stamp(text)
				if err := fns[i](text); err != nil {
					errs.Add(1)
					bad++
					last.Store(err.Error())
					continue
				}
				lats[i] = append(lats[i], int64(time.Since(t)))
			}
		}()
	}
	wg.Wait()
	var all []int64
	for _, l := range lats {
		all = append(all, l...)
	}
	c.Ops, c.Errors = int64(len(all)), errs.Load()
	m.finish(&c)
	c.latencies(all)
	if e := last.Load(); e != nil {
		c.Err = e.(string)
	}
	return c
}

// e2eCell: 16 producers keep `window` jobs in flight; n consumers take and acknowledge them one by one.
func e2eCell(h *Host, s Session, n int) (Cell, error) {
	c := Cell{Kind: "e2e", Conc: n}
	if own, ok := s.(selfLoader); ok {
		return h.selfCell(c, own)
	}
	if other, ok := s.(interface{ EndToEnd() }); ok {
		other.EndToEnd()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tokens := make(chan struct{}, h.o.window)
	for range h.o.window {
		tokens <- struct{}{}
	}
	var mu sync.Mutex
	var lat []int64
	var counting atomic.Bool
	var first sync.Once
	started := make(chan struct{})
	done := func(text []byte) {
		now := time.Now().UnixNano()
		first.Do(func() { close(started) })
		if counting.Load() {
			mu.Lock()
			lat = append(lat, now-stampOf(text))
			mu.Unlock()
		}
		select {
		case tokens <- struct{}{}:
		default: // a redelivery: its token came back before
		}
	}
	failed := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		if err := s.Consume(ctx, n, done); err != nil && ctx.Err() == nil {
			failed <- err
		}
	}()
	fns, err := producers(s, min(16, h.o.window))
	if err != nil {
		cancel()
		wg.Wait()
		return c, err
	}
	var errs atomic.Int64
	for _, f := range fns {
		wg.Add(1)
		go func() {
			defer wg.Done()
			text := newText(h.o.body)
			for {
				select {
				case <-ctx.Done():
					return
				case <-tokens:
				}
				stamp(text)
				if f(text) != nil && errs.Add(1) > 1000 {
					return
				}
			}
		}()
	}
	select {
	case <-started:
	case <-time.After(15 * time.Second):
	}
	time.Sleep(500 * time.Millisecond) // to warm up
	m := h.begin()
	counting.Store(true)
	select {
	case err := <-failed:
		cancel()
		wg.Wait()
		return c, err
	case <-time.After(seconds(h.o.secs)):
	}
	counting.Store(false)
	mu.Lock()
	c.Ops, c.Errors = int64(len(lat)), errs.Load()
	m.finish(&c)
	c.latencies(lat)
	mu.Unlock()
	cancel()
	wg.Wait()
	if c.Ops == 0 {
		return c, fmt.Errorf("no job was finished")
	}
	return c, nil
}

// openCell: jobs come at a constant rate whatever the server does; a latency counts from when the job was due.
func openCell(h *Host, s Session, rate int) (Cell, error) {
	c := Cell{Kind: "open", Conc: rate}
	fns, err := producers(s, 256)
	if err != nil {
		return c, err
	}
	lats := make([][]int64, len(fns))
	var errs, next atomic.Int64
	var wg sync.WaitGroup
	gap := float64(time.Second) / float64(rate)
	total := int64(h.o.secs * float64(rate))
	m := h.begin()
	start := time.Now()
	for i := range fns {
		wg.Add(1)
		go func() {
			defer wg.Done()
			text := newText(h.o.body)
			for {
				k := next.Add(1) - 1
				if k >= total || time.Since(start) > 3*seconds(h.o.secs) {
					return
				}
				due := start.Add(time.Duration(float64(k) * gap))
				time.Sleep(time.Until(due))
				stamp(text)
				if fns[i](text) != nil {
					errs.Add(1)
					continue
				}
				lats[i] = append(lats[i], int64(time.Since(due)))
			}
		}()
	}
	wg.Wait()
	var all []int64
	for _, l := range lats {
		all = append(all, l...)
	}
	c.Ops, c.Errors = int64(len(all)), errs.Load()
	m.finish(&c)
	c.latencies(all)
	return c, nil
}

func (h *Host) selfCell(c Cell, own selfLoader) (Cell, error) {
	var m *meter
	used := Cell{Ops: 1}
	ops, secs, lat, err := own.Load(c.Kind, c.Conc, func() { m = h.begin() }, func() { m.finish(&used) })
	if err != nil {
		return c, err
	}
	n := float64(ops)
	c.Ops, c.PerSec, c.Foreign = ops, n/secs, used.Foreign
	c.Server, c.Flushes = used.Server/n, used.Flushes/n
	c.latencies(lat)
	return c, nil
}
