package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type riverArgs struct {
	Body string `json:"body"`
}

func (riverArgs) Kind() string { return "llm" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	s *riverSession
}

func (w *riverWorker) Work(_ context.Context, j *river.Job[riverArgs]) error {
	w.s.done([]byte(j.Args.Body))
	return nil
}

func riverPeer() Peer {
	return Peer{Name: "river", Note: "PostgreSQL; done is counted when the worker returns, its row is completed later, in batches",
		Start: func(h *Host) (Session, error) {
			dsn, err := startPG(h)
			if err != nil {
				return nil, err
			}
			p, err := newPool(h, dsn)
			if err != nil {
				return nil, err
			}
			m, err := rivermigrate.New(riverpgxv5.New(p), nil)
			if err != nil {
				return nil, err
			}
			if _, err = m.Migrate(context.Background(), rivermigrate.DirectionUp, nil); err != nil {
				return nil, err
			}
			s := &riverSession{p: p}
			s.ins, err = river.NewClient(riverpgxv5.New(p), &river.Config{Logger: slog.New(slog.DiscardHandler)})
			return s, err
		}}
}

type riverSession struct {
	p    *pgxpool.Pool
	ins  *river.Client[pgx.Tx]
	done func([]byte)
}

func (s *riverSession) Reset() error {
	_, err := s.p.Exec(context.Background(), "TRUNCATE river_job")
	return err
}

func (s *riverSession) Producer(int) (func([]byte) error, error) {
	return func(b []byte) error {
		_, err := s.ins.Insert(context.Background(), riverArgs{string(b)}, nil)
		return err
	}, nil
}

func (s *riverSession) Consume(ctx context.Context, n int, done func([]byte)) error {
	s.done = done
	w := river.NewWorkers()
	river.AddWorker(w, &riverWorker{s: s})
	c, err := river.NewClient(riverpgxv5.New(s.p), &river.Config{Logger: slog.New(slog.DiscardHandler), Workers: w,
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: 10 * time.Millisecond, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: n}}})
	if err != nil {
		return err
	}
	if err := c.Start(context.Background()); err != nil {
		return err
	}
	<-ctx.Done()
	stop, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return c.StopAndCancel(stop)
}
