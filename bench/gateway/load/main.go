// Command load drives chat completions at a gateway, in the ways that wrk
// cannot: at a fixed rate whatever the answers do (-mode open), as many streams
// held at once (-mode stream), and with latencies as they were (-mode closed).
// It prints one JSON object.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"os"
	"runtime"
	"runtime/debug"
	"sort"
	"strings"
	"time"
)

type headerList []string

func (h *headerList) String() string     { return strings.Join(*h, ", ") }
func (h *headerList) Set(s string) error { *h = append(*h, s); return nil }

var (
	mode     = flag.String("mode", "stream", "open, closed or stream")
	url      = flag.String("url", "", "chat completions URL, http only")
	body     = flag.String("body", "", "request body; open, closed: #NUMBER# in it is another number in each call")
	conns    = flag.Int("conns", 200, "connections, or concurrent streams")
	rate     = flag.Int("rate", 1000, "open: requests per second")
	duration = flag.Duration("duration", 5*time.Second, "open, closed: how long")
	rounds   = flag.Int("rounds", 3, "stream: streams one after the other, per worker")
	frames   = flag.Int("frames", 64, "stream: tokens that a whole stream has")
	spread   = flag.Duration("spread", 1300*time.Millisecond, "stream: the workers start evenly over this time")
	limit    = flag.Duration("limit", 60*time.Second, "stream: give up on one after this")
	headers  headerList
)

func main() {
	flag.Var(&headers, "H", "header 'name: value', may be repeated")
	flag.Parse()
	runtime.GOMAXPROCS(2) // one for the pace of the open loop
	debug.SetGCPercent(800)
	var result map[string]any
	switch *mode {
	case "open":
		result = openLoop()
	case "closed":
		result = closedLoop()
	case "stream":
		result = streams()
	default:
		log.Fatal("unknown mode ", *mode)
	}
	json.NewEncoder(os.Stdout).Encode(result)
}

func quantiles(d []time.Duration) map[string]float64 {
	if len(d) == 0 {
		return map[string]float64{}
	}
	sort.Slice(d, func(i, j int) bool { return d[i] < d[j] })
	at := func(q float64) float64 {
		i := int(q * float64(len(d)))
		if i == len(d) {
			i--
		}
		return float64(d[i]) / float64(time.Millisecond)
	}
	return map[string]float64{"p50": at(0.5), "p90": at(0.9), "p95": at(0.95), "p99": at(0.99), "max": at(1)}
}
