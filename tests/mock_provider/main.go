// Command mockprovider is a fast fake LLM provider with fault injection.
// It speaks OpenAI, Anthropic and Ollama on one port; README.md has the table
// of faults. It owns the socket (no net/http) so that it can send broken bytes
// on purpose, notice a client that hangs up, and stay cheap per request.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"log"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

var record = flag.Int("record", 0, "keep the last N requests for GET /__requests")

func main() {
	addr := flag.String("addr", "127.0.0.1:9100", "listen address")
	procs := flag.Int("procs", 1, "OS threads that run Go code")
	flag.Parse()
	runtime.GOMAXPROCS(*procs)
	debug.SetGCPercent(800)
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("mockprovider on", ln.Addr())
	for {
		c, err := ln.Accept()
		if err != nil {
			log.Print(err)
			time.Sleep(10 * time.Millisecond)
			continue
		}
		go serveConn(c.(*net.TCPConn))
	}
}

// conn is one client connection, served by one goroutine.
type conn struct {
	tcp *net.TCPConn
	br  *bufio.Reader
	req request
	out []byte // response bytes not yet written
}

func serveConn(tcp *net.TCPConn) {
	c := &conn{tcp: tcp, br: bufio.NewReaderSize(tcp, 16<<10)}
	stats.connections(1)
	defer func() { stats.connections(-1); tcp.Close() }()
	for {
		if err := c.req.read(c.br, tcp); err != nil {
			return
		}
		if *record > 0 {
			stats.remember(&c.req)
		}
		if !c.dispatch() {
			return
		}
	}
}

// dispatch answers one request and tells whether the connection stays open.
func (c *conn) dispatch() bool {
	r := &c.req
	provider, fault, path := splitPath(r.path)
	if strings.HasPrefix(path, "/__") || path == "/health" {
		c.admin(path)
		return !r.close
	}
	x := &exchange{c: c, provider: provider, id: nextID.Add(1), started: time.Now()}
	if r.method == "GET" {
		return c.catalogue(path) && !r.close
	}
	var d dialect
	switch path {
	case "/v1/chat/completions", "/chat/completions":
		d = openai{}
	case "/v1/completions", "/completions":
		d = completions{}
	case "/v1/messages":
		d = anthropic{}
	case "/api/chat":
		d = ollama{}
		x.in.stream = true // Ollama streams unless told not to
	case "/v1/embeddings", "/embeddings", "/api/embed":
	default:
		c.reply(404, "application/json", []byte(`{"error":{"message":"unknown path","type":"invalid_request_error","param":null,"code":null}}`))
		return !r.close
	}
	valid := x.in.parse(r.body)
	x.spec, x.specText = resolveSpec(provider, x.in.model, fault, r.query, r.fault)
	x.begin(path)
	var o outcome
	switch {
	case !valid:
		o = x.fail(d, 400, "could not parse the JSON body of your request")
	case d == nil:
		o = x.embeddings(path)
	default:
		o = x.chat(d)
	}
	x.end(o)
	if o == finished || o == failed {
		if x.spec.stale >= 0 { // answered as keep-alive, closed all the same
			time.Sleep(x.spec.stale)
			return false
		}
		return !r.close && !x.spec.teClose
	}
	return false
}

// splitPath takes the optional prefixes "/p/<provider>" and "/f/<faults>" off a path.
func splitPath(path string) (provider, fault, rest string) {
	for len(path) > 3 && (path[:3] == "/p/" || path[:3] == "/f/") {
		end := strings.IndexByte(path[3:], '/')
		if end < 0 {
			break
		}
		if path[1] == 'p' {
			provider = path[3 : 3+end]
		} else {
			fault = path[3 : 3+end]
		}
		path = path[3+end:]
	}
	return provider, fault, path
}
