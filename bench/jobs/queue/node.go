package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

//go:embed node/load.mjs
var nodeScript []byte

// nodePeer measures a JavaScript library with its own client.
func nodePeer(name, lib, back, note string) Peer {
	return Peer{Name: name, Note: note, Start: func(h *Host) (Session, error) {
		s := &nodeSession{h: h, lib: lib}
		var err error
		if back == "pg" {
			s.addr, err = startPG(h)
		} else {
			s.addr, err = startRedis(h)
		}
		if err != nil {
			return nil, err
		}
		s.script = filepath.Join(h.o.node, "load.mjs") // imports resolve beside node_modules
		return s, os.WriteFile(s.script, nodeScript, 0o644)
	}}
}

type nodeSession struct {
	Session
	h                 *Host
	lib, addr, script string
}

func (s *nodeSession) Reset() error { return nil } // the script empties its queue

func (s *nodeSession) Load(kind string, conc int, begin, end func()) (int64, float64, []int64, error) {
	fail := func(err error) (int64, float64, []int64, error) { return 0, 0, nil, err }
	c := exec.Command("node", s.script, s.lib, s.addr, kind, strconv.Itoa(conc), fmt.Sprint(s.h.o.secs), strconv.Itoa(s.h.o.body), strconv.Itoa(s.h.o.window))
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	if err := c.Start(); err != nil {
		return fail(err)
	}
	kill := time.AfterFunc(seconds(30+3*s.h.o.secs), func() { _ = c.Process.Kill() })
	defer kill.Stop()
	defer c.Wait()
	r := bufio.NewReader(out)
	for _, f := range []func(){begin, end} { // the script says "begin" and "end"
		if _, err := r.ReadString('\n'); err != nil {
			return fail(fmt.Errorf("node: %v", err))
		}
		f()
	}
	var res struct {
		Ops  int64
		Secs float64
		Lat  []int64
	}
	if err := json.NewDecoder(r).Decode(&res); err != nil || res.Ops == 0 {
		return fail(fmt.Errorf("node finished %d jobs: %v", res.Ops, err))
	}
	return res.Ops, res.Secs, res.Lat, nil
}
