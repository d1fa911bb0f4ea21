package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// submitPeers are compared in taking jobs; the first is the baseline, which speaks its own protocol.
func submitPeers() []Peer {
	return []Peer{
		redisPeer("stream"),
		waybillPeer(),
		frontPeer("go-redis", "redis", "Go handler; SET NX and XADD in one script, appendfsync always"),
		frontPeer("go-pg", "pg", "Go handler; INSERT ON CONFLICT, a statement a job"),
		frontPeer("go-pg-batch", "pgbatch", "Go handler; group commit of up to 128 rows"),
		webdisPeer(),
	}
}

// brokerPeers are compared from taking a job to its acknowledgement; each runs alone, since some are never idle.
func brokerPeers() []Peer {
	return []Peer{
		redisPeer("stream"),
		waybillPeer(),
		redisPeer("list"),
		pgPeer(1),
		pgPeer(128),
		riverPeer(),
		nodePeer("pg-boss", "pg-boss", "pg", "PostgreSQL, one Node process; fetch and complete one by one"),
		nodePeer("bullmq", "bullmq", "redis", "Redis always, one Node process"),
		rabbitPeer(),
	}
}

// frontPeer is what teams write first: a small HTTP handler that stores the job in Redis or PostgreSQL and answers 202.
func frontPeer(name, back, note string) Peer {
	return Peer{Name: name, Note: note, Keyed: true, Start: func(h *Host) (Session, error) {
		s := &httpSession{host: "127.0.0.1:" + freePort(), path: "/v1/jobs", body: chatJob, keyed: true, ok: 202, textLen: h.o.body}
		h.closers = append(h.closers, s.closeAll)
		var dsn string
		var err error
		if back == "redis" {
			dsn, err = startRedis(h)
			s.reset = redisEmptied(dsn)
			dsn = "redis://" + dsn
		} else if dsn, err = startPG(h); err == nil {
			s.reset = pgEmptied(dsn)
			dsn = strings.Replace(dsn, "postgres", back, 1)
		}
		if err != nil {
			return nil, err
		}
		exe, _ := os.Executable()
		if err := h.server(proc{}, exe, "front", "-addr", s.host, "-back", dsn); err != nil {
			return nil, err
		}
		return s, waitTCP(s.host, 10*time.Second)
	}}
}

func webdisPeer() Peer {
	return Peer{Name: "webdis", Note: "LPUSH over HTTP, in C, with libevent; Redis always; no idempotency key", Start: func(h *Host) (Session, error) {
		addr, err := startRedis(h)
		if err != nil {
			return nil, err
		}
		port, conf := freePort(), filepath.Join(h.dir, "webdis.json")
		_, redisPort, _ := net.SplitHostPort(addr)
		text := fmt.Sprintf(`{"redis_host":"127.0.0.1","redis_port":%s,"http_host":"127.0.0.1","http_port":%s,"threads":2,"pool_size":32,"daemonize":false,"verbosity":1,"logfile":"%s/webdis.log"}`, redisPort, port, h.dir)
		if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
			return nil, err
		}
		if err := h.server(proc{}, "webdis", conf); err != nil {
			return nil, err
		}
		s := &httpSession{host: "127.0.0.1:" + port, path: "/", body: "LPUSH/q/%s", ok: 200, textLen: h.o.body, reset: redisEmptied(addr)}
		h.closers = append(h.closers, s.closeAll)
		return s, waitTCP(s.host, 10*time.Second)
	}}
}

// start starts those of the peers that were asked for and are installed here.
func start(p Peer, o options) (*Host, Session, error) {
	h := newHost(o, p.Name)
	s, err := p.Start(h)
	if err != nil {
		say("%-16s does not start: %v\n%s", p.Name, err, h.logTail())
		h.stop()
	}
	return h, s, err
}

type running struct {
	Peer
	h *Host
	s Session
}

func (r running) cell(cells *[]Cell, f func() (Cell, error)) Cell {
	c, err := f()
	if err != nil {
		c.Err = err.Error()
	}
	c.Peer = r.Name
	say("%v", c)
	*cells = append(*cells, c)
	return c
}

type submitResult struct {
	Peers []string          `json:"peers"`
	Keyed []string          `json:"keyed"`
	Notes map[string]string `json:"notes"`
	Cells []Cell            `json:"cells"`
	Syncs []float64         `json:"syncs_per_s"` // the disk's, in each round
}

// submitCommand: everybody stands ready, and takes jobs in turn.
func submitCommand(o options) any {
	out := submitResult{Notes: map[string]string{}}
	var all []running
	for _, p := range submitPeers() {
		if !o.wants(p.Name) {
			continue
		}
		h, s, err := start(p, o)
		if err != nil {
			if p.Name == "waybill" {
				fatal("waybill does not start")
			}
			continue
		}
		all = append(all, running{p, h, s})
		out.Peers, out.Notes[p.Name] = append(out.Peers, p.Name), p.Note
		if p.Keyed {
			out.Keyed = append(out.Keyed, p.Name)
		}
	}
	best := map[string]float64{}
	for _, conc := range o.conc {
		for range o.rounds {
			if conc == 1 {
				out.Syncs = append(out.Syncs, syncRate(o.work, min(o.secs, 1)))
				say("%-16s %.0f/s", "disk syncs", out.Syncs[len(out.Syncs)-1])
			}
			for _, r := range all {
				if err := r.s.Reset(); err != nil {
					fatal("%s: reset: %v", r.Name, err)
				}
				c := r.cell(&out.Cells, func() (Cell, error) { return enqueueCell(r.h, r.s, conc) })
				best[r.Name] = max(best[r.Name], c.PerSec)
			}
		}
	}
	for range o.rounds {
		for _, r := range all {
			if _, http := r.s.(interface{ overHTTP() }); !http {
				continue
			}
			if err := r.s.Reset(); err == nil {
				r.cell(&out.Cells, func() (Cell, error) { return openCell(r.h, r.s, int(best[r.Name]/2)) })
			}
		}
	}
	return out
}

func (s *httpSession) overHTTP() {}

// brokersCommand: one after the other; the baseline once more at the end, which shows the drift of the machine.
func brokersCommand(o options) any {
	out := submitResult{Notes: map[string]string{}}
	todo := brokerPeers()
	again := todo[0]
	again.Name += "-again"
	for _, p := range append(todo, again) {
		if !o.wants(p.Name) && p.Name != again.Name {
			continue
		}
		h, s, err := start(p, o)
		if err != nil {
			continue
		}
		r := running{p, h, s}
		out.Peers, out.Notes[p.Name] = append(out.Peers, p.Name), p.Note
		for range o.rounds {
			if err := s.Reset(); err == nil {
				r.cell(&out.Cells, func() (Cell, error) { return enqueueCell(h, s, 64) })
			}
			if err := s.Reset(); err == nil {
				r.cell(&out.Cells, func() (Cell, error) { return e2eCell(h, s, 16) })
			}
		}
		h.stop()
	}
	return out
}
