// jobs_bench measures durable job queues side by side on one machine: how many jobs a second each acknowledges once
// they are on disk, how long a job takes, and what Waybill does with very many. ../README.md says what each cell is.
// Each command prints one JSON document; what happens meanwhile goes to standard error.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

type options struct {
	work, peers, waybill, config, node string
	conc                               []int
	secs                               float64
	body, window, rounds               int
	jobs, waiting, perSecond           int
}

func numbers(s string) (out []int) {
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(f)
		if err != nil {
			fatal("bad number %q", f)
		}
		out = append(out, n)
	}
	return
}

func fatal(f string, a ...any) {
	fmt.Fprintf(os.Stderr, "jobs_bench: "+f+"\n", a...)
	for len(hosts) > 0 {
		hosts[0].stop()
	}
	os.Exit(1)
}

func say(f string, a ...any) { fmt.Fprintf(os.Stderr, f+"\n", a...) }

var commands = map[string]func(options) any{
	"submit": submitCommand, "brokers": brokersCommand, "idle": idleCommand, "life": lifeCommand,
	"depth": depthCommand, "waiting": waitingCommand, "restart": restartCommand,
}

func main() {
	if len(os.Args) < 2 || (os.Args[1] != "front" && commands[os.Args[1]] == nil) {
		fatal("usage: jobs_bench submit|brokers|idle|life|depth|waiting|restart|front [flags]")
	}
	fs := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	var o options
	fs.StringVar(&o.work, "work", "", "folder for data, on a real disk, open to the postgres user")
	fs.StringVar(&o.waybill, "waybill", "", "the program")
	fs.StringVar(&o.config, "config", "", "its configuration, with {{PORT}}, {{DIR}} and {{PROVIDER}}")
	fs.StringVar(&o.node, "node", "", "folder with the node_modules of pg-boss and BullMQ")
	fs.StringVar(&o.peers, "peers", "", "comma list of peers; empty: all")
	conc := fs.String("conc", "1,16,64,256", "clients at a time")
	fs.Float64Var(&o.secs, "secs", 1.5, "seconds a cell")
	fs.IntVar(&o.body, "body", 512, "bytes of a job's text")
	fs.IntVar(&o.window, "window", 64, "jobs in flight in an end-to-end cell")
	fs.IntVar(&o.rounds, "rounds", 2, "rounds, in which all take turns; the best counts")
	fs.IntVar(&o.jobs, "jobs", 1_000_000, "jobs that are queued: depth, restart")
	fs.IntVar(&o.waiting, "waiting", 10_000, "long polls at a time")
	fs.IntVar(&o.perSecond, "per-second", 500, "jobs that end while they wait")
	address := fs.String("addr", "", "front: where to listen")
	back := fs.String("back", "", "front: redis://ADDRESS, pg://DSN or pgbatch://DSN")
	_ = fs.Parse(os.Args[2:])
	o.conc = numbers(*conc)
	if os.Args[1] == "front" {
		serveFront(*address, *back)
	}
	// One thread for the load and the provider: with more, Go's threads look for work on the core that the server needs.
	runtime.GOMAXPROCS(1)
	result := commands[os.Args[1]](o)
	for len(hosts) > 0 {
		hosts[0].stop()
	}
	_ = json.NewEncoder(os.Stdout).Encode(result)
}

func seconds(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }

func (o options) wants(name string) bool {
	if name == "waybill" {
		return o.waybill != ""
	}
	if o.peers == "" {
		return true
	}
	for _, f := range strings.Split(o.peers, ",") {
		if f == name {
			return true
		}
	}
	return false
}
