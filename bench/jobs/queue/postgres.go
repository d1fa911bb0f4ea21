package main

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func credential(name string) *syscall.Credential {
	if name == "" || os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func pgBin(name string) string {
	m, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(m) == 0 {
		return ""
	}
	return m[len(m)-1]
}

// startPG runs a fresh cluster with synchronous_commit=on, fsync=on.
func startPG(h *Host) (dsn string, err error) {
	data, port := filepath.Join(h.dir, "pg"), freePort()
	if c := credential("postgres"); c != nil {
		for d := h.dir; len(d) >= len(h.o.work); d = filepath.Dir(d) {
			_ = os.Chmod(d, 0o755)
		}
		if err = os.Chown(h.dir, int(c.Uid), int(c.Gid)); err != nil {
			return
		}
	}
	p := proc{user: "postgres"}
	if err = h.once(p, pgBin("initdb"), "-D", data, "-U", "bench", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale", "C"); err != nil {
		return
	}
	args := []string{pgBin("postgres"), "-D", data, "-k", ""}
	for _, kv := range []string{"listen_addresses=127.0.0.1", "port=" + port, "max_connections=320", "shared_buffers=512MB", "synchronous_commit=on", "fsync=on",
		"max_wal_size=4GB", "checkpoint_timeout=15min", "wal_compression=off", "autovacuum=off"} {
		args = append(args, "-c", kv)
	}
	if err = h.server(p, args...); err != nil {
		return
	}
	if err = waitTCP("127.0.0.1:"+port, 20*time.Second); err != nil {
		return
	}
	dsn = "postgres://bench@127.0.0.1:" + port + "/postgres?sslmode=disable"
	for range 100 { // it listens a moment before it serves
		var c *pgx.Conn
		if c, err = pgx.Connect(context.Background(), dsn); err == nil {
			_ = c.Close(context.Background())
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	return
}

func newPool(h *Host, dsn string) (*pgxpool.Pool, error) {
	c, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	c.MaxConns = 64 // what a service would allow itself; more producers wait
	p, err := pgxpool.NewWithConfig(context.Background(), c)
	if err == nil {
		h.closers = append(h.closers, p.Close)
	}
	return p, err
}

const pgSchema = `CREATE TABLE IF NOT EXISTS jobs(
  seq bigserial PRIMARY KEY, id uuid NOT NULL DEFAULT gen_random_uuid() UNIQUE, idem text NOT NULL UNIQUE, state smallint NOT NULL DEFAULT 0,
  visible_at timestamptz NOT NULL DEFAULT now(), receives int NOT NULL DEFAULT 0, fence int NOT NULL DEFAULT 0, body text NOT NULL, result text);
CREATE INDEX IF NOT EXISTS jobs_ready ON jobs(visible_at) WHERE state < 2`

// pgPeer is the plain table with SKIP LOCKED. batch > 1: a group-commit batcher inserts, claims and finishes many rows a statement.
func pgPeer(batch int) Peer {
	name, note := "pg", "SKIP LOCKED, a statement a job, 64 connections"
	if batch > 1 {
		name, note = "pg-batch", fmt.Sprintf("SKIP LOCKED, up to %d rows an insert, 32 a claim", batch)
	}
	return Peer{Name: name, Note: note, Start: func(h *Host) (Session, error) {
		dsn, err := startPG(h)
		if err != nil {
			return nil, err
		}
		p, err := newPool(h, dsn)
		if err != nil {
			return nil, err
		}
		_, err = p.Exec(context.Background(), pgSchema)
		s := &pgSession{p: p, batch: batch}
		if batch > 1 {
			s.in = newPgBatcher(p, batch)
			h.closers = append(h.closers, s.in.stop)
		}
		return s, err
	}}
}

type pgSession struct {
	p     *pgxpool.Pool
	batch int
	in    *pgBatcher
}

func (s *pgSession) Reset() error {
	_, err := s.p.Exec(context.Background(), "TRUNCATE jobs")
	return err
}

func (s *pgSession) Producer(int) (func([]byte) error, error) {
	if s.in != nil {
		return func(b []byte) error { return s.in.add(newKey(), string(b)) }, nil
	}
	return func(b []byte) error {
		_, err := s.p.Exec(context.Background(), "INSERT INTO jobs(idem,body) VALUES($1,$2) ON CONFLICT (idem) DO NOTHING", newKey(), string(b))
		return err
	}, nil
}

func (s *pgSession) Consume(ctx context.Context, n int, done func([]byte)) error {
	limit := 1
	if s.batch > 1 {
		limit = 32
	}
	var wg sync.WaitGroup
	var first error
	var once sync.Once
	for range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for ctx.Err() == nil {
				if err := s.round(ctx, limit, done); err != nil && ctx.Err() == nil {
					once.Do(func() { first = err })
					return
				}
			}
		}()
	}
	wg.Wait()
	return first
}

func (s *pgSession) round(ctx context.Context, limit int, done func([]byte)) error {
	rows, err := s.p.Query(ctx, `UPDATE jobs SET state=1, visible_at=now()+interval '30 s', receives=receives+1, fence=fence+1 WHERE seq IN
	  (SELECT seq FROM jobs WHERE state<2 AND visible_at<=now() ORDER BY visible_at LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING seq, body`, limit)
	if err != nil {
		return err
	}
	var seqs []int64
	var bodies []string
	for rows.Next() {
		var q int64
		var b string
		if err := rows.Scan(&q, &b); err != nil {
			return err
		}
		seqs, bodies = append(seqs, q), append(bodies, b)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if len(seqs) == 0 {
		time.Sleep(2 * time.Millisecond)
		return nil
	}
	if _, err = s.p.Exec(ctx, "UPDATE jobs SET state=2, result='ok' WHERE seq=ANY($1) AND state=1", seqs); err != nil {
		return err
	}
	for _, b := range bodies {
		done([]byte(b))
	}
	return nil
}

// pgBatcher collects concurrent inserts into one multi-row statement: group commit in the client.
type pgBatcher struct {
	in   chan pgItem
	quit chan struct{}
	wg   sync.WaitGroup
}
type pgItem struct {
	key, body string
	ack       chan error
}

func newPgBatcher(p *pgxpool.Pool, limit int) *pgBatcher {
	b := &pgBatcher{in: make(chan pgItem, 4096), quit: make(chan struct{})}
	for range 2 { // two in flight: one commits while the other fills
		b.wg.Add(1)
		go func() {
			defer b.wg.Done()
			for {
				var items []pgItem
				select {
				case <-b.quit:
					return
				case it := <-b.in:
					items = append(items, it)
				}
			fill:
				for len(items) < limit {
					select {
					case it := <-b.in:
						items = append(items, it)
					default:
						break fill
					}
				}
				keys, bodies := make([]string, len(items)), make([]string, len(items))
				for i, it := range items {
					keys[i], bodies[i] = it.key, it.body
				}
				_, err := p.Exec(context.Background(), "INSERT INTO jobs(idem,body) SELECT * FROM unnest($1::text[],$2::text[]) ON CONFLICT (idem) DO NOTHING", keys, bodies)
				for _, it := range items {
					it.ack <- err
				}
			}
		}()
	}
	return b
}

func (b *pgBatcher) add(key, body string) error {
	it := pgItem{key, body, make(chan error, 1)}
	b.in <- it
	return <-it.ack
}
func (b *pgBatcher) stop() { close(b.quit); b.wg.Wait() }

func pgEmptied(dsn string) func() error {
	return func() error {
		c, err := pgx.Connect(context.Background(), dsn)
		if err != nil {
			return err
		}
		defer c.Close(context.Background())
		_, err = c.Exec(context.Background(), pgSchema+"; TRUNCATE jobs")
		return err
	}
}
