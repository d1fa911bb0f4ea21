package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Host owns a peer's data folder and the processes started for it.
type Host struct {
	o       options
	dir     string
	servers []*exec.Cmd
	closers []func()
}

var hosts []*Host // those that run

func newHost(o options, name string) *Host {
	h := &Host{o: o, dir: filepath.Join(o.work, name)}
	_ = os.RemoveAll(h.dir)
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		fatal("%v", err)
	}
	hosts = append(hosts, h)
	return h
}

func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fatal("%v", err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

type proc struct {
	env  []string
	user string // run as this user when we are root (PostgreSQL refuses root)
}

// server starts a long-running process in its own group, logging to log.txt.
func (h *Host) server(p proc, argv ...string) error {
	log, err := os.OpenFile(filepath.Join(h.dir, "log.txt"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Stdout, c.Stderr = h.dir, log, log
	c.Env = append(os.Environ(), p.env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM, Credential: credential(p.user)}
	if err := c.Start(); err != nil {
		return err
	}
	h.servers = append(h.servers, c)
	return nil
}

// once runs a setup command to its end.
func (h *Host) once(p proc, argv ...string) error {
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir, c.Env = h.dir, append(os.Environ(), p.env...)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: credential(p.user)}
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %v: %s", argv[0], err, tail(string(out), 400))
	}
	return nil
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

func (h *Host) logTail() string {
	b, _ := os.ReadFile(filepath.Join(h.dir, "log.txt"))
	return tail(string(b), 1500)
}

// end stops a server and waits until it is gone.
func end(c *exec.Cmd, how syscall.Signal) {
	_ = syscall.Kill(-c.Process.Pid, how)
	gone := make(chan struct{})
	go func() { _ = c.Wait(); close(gone) }()
	select {
	case <-gone:
	case <-time.After(15 * time.Second):
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		<-gone
	}
}

func (h *Host) stop() {
	for i := len(h.closers) - 1; i >= 0; i-- {
		h.closers[i]()
	}
	for i := len(h.servers) - 1; i >= 0; i-- {
		end(h.servers[i], syscall.SIGTERM)
	}
	h.servers, h.closers = nil, nil
	_ = os.RemoveAll(h.dir)
	hosts = slices.DeleteFunc(hosts, func(other *Host) bool { return other == h })
}

func waitTCP(addr string, d time.Duration) error {
	var err error
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var c net.Conn
		if c, err = net.DialTimeout("tcp", addr, time.Second); err == nil {
			c.Close()
			return nil
		}
	}
	return fmt.Errorf("nothing listens on %s: %v", addr, err)
}

// ---- accounting ---------------------------------------------------------------

type meter struct {
	h                            *Host
	t                            time.Time
	server, client, own, machine float64
	flushes                      int64
}

// trees returns CPU seconds (user+system) of the servers' process trees, and the user seconds of all that is ours.
func (h *Host) trees() (server, ownUser float64) {
	type ps struct {
		parent       int
		user, system float64
	}
	all := map[int]ps{}
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, d := range dirs {
		b, err := os.ReadFile(d)
		if err != nil {
			continue
		}
		s := string(b)
		pid, _ := strconv.Atoi(s[:strings.IndexByte(s, ' ')])
		f := strings.Fields(s[strings.LastIndexByte(s, ')')+2:])
		n := func(i int) float64 { v, _ := strconv.ParseFloat(f[i], 64); return v / 100 }
		parent, _ := strconv.Atoi(f[1])
		all[pid] = ps{parent, n(11) + n(13), n(12) + n(14)} // with children that ended
	}
	roots := map[int]bool{}
	for _, c := range h.servers {
		roots[c.Process.Pid] = true
	}
	self := os.Getpid()
	for pid, p := range all {
		for q, i := pid, 0; q > 1 && i < 20; q, i = all[q].parent, i+1 {
			if roots[q] {
				server += p.user + p.system
			}
			if q == self {
				ownUser += p.user
				break
			}
		}
	}
	return
}

func machineUser() float64 {
	b, _ := os.ReadFile("/proc/stat")
	f := strings.Fields(strings.SplitN(string(b), "\n", 2)[0])
	u, _ := strconv.ParseFloat(f[1], 64)
	n, _ := strconv.ParseFloat(f[2], 64)
	return (u + n) / 100
}

// diskFlushes counts completed cache flushes of all whole disks.
func diskFlushes() (n int64) {
	b, _ := os.ReadFile("/proc/diskstats")
	for _, l := range strings.Split(string(b), "\n") {
		f := strings.Fields(l)
		if len(f) >= 19 && !strings.HasPrefix(f[2], "loop") && !strings.HasPrefix(f[2], "dm-") {
			v, _ := strconv.ParseInt(f[18], 10, 64)
			n += v
		}
	}
	return
}

func clientCPU() float64 {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

func (h *Host) begin() *meter {
	m := &meter{h: h}
	m.server, m.own = h.trees()
	m.client, m.machine, m.flushes, m.t = clientCPU(), machineUser(), diskFlushes(), time.Now()
	return m
}

func (m *meter) finish(c *Cell) {
	secs := time.Since(m.t).Seconds()
	client, machine, fl := clientCPU(), machineUser(), diskFlushes()
	server, own := m.h.trees()
	ops := max(1, float64(c.Ops))
	c.PerSec = float64(c.Ops) / secs
	c.Server, c.Client = max(0, server-m.server)/ops*1e6, (client-m.client)/ops*1e6
	c.Flushes = float64(fl-m.flushes) / ops
	c.Foreign = max(0, (machine-m.machine)-(own-m.own)) / secs
}
