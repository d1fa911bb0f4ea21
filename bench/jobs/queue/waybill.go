package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// server is a Waybill that was started here.
type server struct {
	h        *Host
	provider *provider
	host     string
	cmd      *exec.Cmd
}

func startWaybill(o options, name string) *server {
	w := &server{h: newHost(o, name), provider: startProvider()}
	if err := w.start(); err != nil {
		fatal("waybill: %v\n%s", err, w.h.logTail())
	}
	return w
}

func (w *server) start() error {
	config, err := os.ReadFile(w.h.o.config)
	if err != nil {
		return err
	}
	port := freePort()
	w.host = "127.0.0.1:" + port
	text := strings.NewReplacer("{{PORT}}", port, "{{DIR}}", w.h.dir, "{{PROVIDER}}", "http://"+w.provider.address).Replace(string(config))
	if err := os.MkdirAll(filepath.Join(w.h.dir, "store"), 0o755); err != nil {
		return err
	}
	name := filepath.Join(w.h.dir, "waybill.yaml")
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return err
	}
	if err := w.h.server(proc{}, w.h.o.waybill, "serve", "--config", name); err != nil {
		return err
	}
	w.cmd = w.h.servers[len(w.h.servers)-1]
	return w.ready()
}

func (w *server) ready() error {
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if c, err := dialHTTP(w.host); err == nil {
			status, _, err := c.call("GET", "/ready", "")
			c.Close()
			if err == nil && status == 200 {
				return nil
			}
		}
		if stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.cmd.Process.Pid)); bytes.Contains(stat, []byte(") Z ")) {
			return fmt.Errorf("it ended")
		}
	}
	return fmt.Errorf("not ready after a minute")
}

func (w *server) stop(how syscall.Signal) {
	end(w.cmd, how)
	w.h.servers = nil
}

// ask is for what is not measured.
func (w *server) ask(method, path, body string) []byte {
	c, err := dialHTTP(w.host)
	if err != nil {
		fatal("waybill: %v\n%s", err, w.h.logTail())
	}
	defer c.Close()
	status, answer, err := c.call(method, path, body)
	if err != nil || status < 200 || status > 299 {
		fatal("waybill: %s %s: %d %.300s %v", method, path, status, answer, err)
	}
	return answer
}

// memory: VmRSS or VmHWM (the most it ever was), in MB.
func (w *server) memory(field string) float64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(b), field+":")
	kb, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseFloat(kb, 64)
	return n / 1024
}

const batch = 1000

// fill makes n jobs for workers elsewhere, so that they stay, in calls of 1,000; it returns their ids, in order.
func (w *server) fill(n int, keepIDs bool) (ids []string, perSecond float64) {
	var b strings.Builder
	b.WriteString(`{"jobs":[`)
	for i := range batch {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, outsideJob, newText(256))
	}
	b.WriteString(`]}`)
	request := fmt.Appendf(nil, "POST /v1/jobs HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", w.host, b.Len(), b.String())
	calls, clients := n/batch, 4
	if keepIDs {
		clients = 1
	}
	start := time.Now()
	var wg sync.WaitGroup
	for k := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c, err := dialHTTP(w.host)
			if err != nil {
				fatal("waybill: %v", err)
			}
			defer c.Close()
			for i := k; i < calls; i += clients {
				_ = c.c.SetDeadline(time.Now().Add(patience))
				status, answer, err := c.do(request)
				if err != nil || status != 202 {
					fatal("waybill: %d jobs in one call: %d %.300s %v", batch, status, answer, err)
				}
				if keepIDs {
					var list struct{ Data []struct{ ID string } }
					if err := json.Unmarshal(answer, &list); err != nil || len(list.Data) != batch {
						fatal("waybill: %d jobs in one call, %d in the answer: %v", batch, len(list.Data), err)
					}
					for _, job := range list.Data {
						ids = append(ids, job.ID)
					}
				}
			}
		}()
	}
	wg.Wait()
	return ids, float64(calls*batch) / time.Since(start).Seconds()
}

const outsideJob = `{"queue":"outside","kind":"external","request":{"text":"%s"}}`

// Between these two an id or a token stands.
func field(answer []byte, name string) (string, bool) {
	_, rest, found := bytes.Cut(answer, []byte(`"`+name+`":"`))
	value, _, closed := bytes.Cut(rest, []byte(`"`))
	return string(value), found && closed
}

// tokens are those of all leases in an answer.
func tokens(answer []byte) (out []string) {
	for {
		_, rest, found := bytes.Cut(answer, []byte(`"token":"`))
		if !found {
			return
		}
		value, after, _ := bytes.Cut(rest, []byte(`"`))
		out, answer = append(out, string(value)), after
	}
}

func (w *server) lease(c *httpConn, most, wait int) ([]byte, error) {
	status, answer, err := c.call("POST", "/v1/queues/outside/lease", fmt.Sprintf(`{"max":%d,"wait":%d,"visibility":3600}`, most, wait))
	if err == nil && status != 200 {
		err = fmt.Errorf("lease: %d %.200s", status, answer)
	}
	return answer, err
}

func (w *server) complete(c *httpConn, token string) error {
	status, answer, err := c.call("POST", "/v1/leases/"+token+"/complete", `{"result":{"ok":true}}`)
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("complete: %d %.200s", status, answer)
	}
	return err
}

// waybillPeer: chat jobs into a queue that stands still, so that the cells of taking jobs measure taking; jobs for
// workers elsewhere, end to end. An empty queue is a new store.
func waybillPeer() Peer {
	return Peer{Name: "waybill", Note: "HTTP, Idempotency-Key checked, the body validated; end to end by workers elsewhere", Keyed: true, Start: func(h *Host) (Session, error) {
		w := &server{h: h, provider: startProvider()}
		s := &waybillSession{server: w, httpSession: httpSession{path: "/v1/jobs", body: chatJob, keyed: true, ok: 202, textLen: h.o.body}}
		h.closers = append(h.closers, s.closeAll)
		return s, w.start()
	}}
}

type waybillSession struct {
	*server
	httpSession
}

func (s *waybillSession) Reset() error {
	s.closeAll()
	s.stop(syscall.SIGTERM)
	if err := os.RemoveAll(filepath.Join(s.h.dir, "store")); err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return fmt.Errorf("%w\n%s", err, s.h.logTail())
	}
	s.httpSession.host, s.body = s.server.host, chatJob
	s.ask("POST", "/v1/queues/default/pause", "")
	return nil
}

// EndToEnd: from now on jobs are for workers elsewhere.
func (s *waybillSession) EndToEnd() { s.body = outsideJob }

func (s *waybillSession) Consume(ctx context.Context, n int, done func([]byte)) error {
	var wg sync.WaitGroup
	failed := make(chan error, n)
	for range n {
		c, err := dialHTTP(s.server.host)
		if err != nil {
			return err
		}
		s.add(c)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for ctx.Err() == nil {
				answer, err := s.lease(c, 1, 1)
				if err != nil {
					failed <- err
					return
				}
				at := bytes.Index(answer, []byte(stampMark+"0"))
				if at < 0 {
					continue // none came
				}
				text := bytes.Clone(answer[at : at+len(stampMark)+stampLen])
				token, _ := field(answer, "token")
				if err := s.complete(c, token); err != nil {
					failed <- err
					return
				}
				done(text)
			}
		}()
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}
