package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const rabbitScript = "/usr/lib/rabbitmq/bin/rabbitmq-server"

func rabbitPeer() Peer {
	return Peer{Name: "rabbitmq", Note: "quorum queue with one member, publisher confirms",
		Start: func(h *Host) (Session, error) {
			port, dist, epmd := freePort(), freePort(), freePort()
			plugins := filepath.Join(h.dir, "plugins")
			_ = os.WriteFile(plugins, []byte("[].\n"), 0o644)
			p := proc{env: []string{"HOME=" + h.dir, "RABBITMQ_NODENAME=bench@localhost", "RABBITMQ_NODE_IP_ADDRESS=127.0.0.1", "RABBITMQ_NODE_PORT=" + port,
				"RABBITMQ_DIST_PORT=" + dist, "ERL_EPMD_PORT=" + epmd, "ERL_EPMD_ADDRESS=127.0.0.1", "RABBITMQ_MNESIA_BASE=" + h.dir + "/mnesia",
				"RABBITMQ_LOG_BASE=" + h.dir, "RABBITMQ_LOGS=-", "RABBITMQ_ENABLED_PLUGINS_FILE=" + plugins, "RABBITMQ_CONF_ENV_FILE=/dev/null"}}
			if err := h.server(p, "epmd", "-port", epmd); err != nil { // else rabbit leaves one running
				return nil, err
			}
			if err := waitTCP("127.0.0.1:"+epmd, 5*time.Second); err != nil {
				return nil, err
			}
			if err := h.server(p, rabbitScript); err != nil {
				return nil, err
			}
			if err := waitTCP("127.0.0.1:"+port, 60*time.Second); err != nil {
				return nil, err
			}
			time.Sleep(time.Second)
			s := &rabbitSession{url: "amqp://guest:guest@127.0.0.1:" + port + "/"}
			h.closers = append(h.closers, s.close)
			return s, nil
		}}
}

type rabbitSession struct {
	url   string
	conns []*amqp.Connection
	gen   int
}

func (s *rabbitSession) close() {
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.conns = nil
}

func (s *rabbitSession) queue() string { return fmt.Sprintf("q%d", s.gen) }

func (s *rabbitSession) channel(i int) (*amqp.Channel, error) {
	if i%16 == 0 || len(s.conns) == 0 {
		c, err := amqp.Dial(s.url)
		if err != nil {
			return nil, err
		}
		s.conns = append(s.conns, c)
	}
	return s.conns[len(s.conns)-1].Channel()
}

func (s *rabbitSession) Reset() error {
	s.close()
	ch, err := s.channel(0)
	if err != nil {
		return err
	}
	if s.gen > 0 {
		_, _ = ch.QueueDelete(s.queue(), false, false, false)
	}
	s.gen++
	_, err = ch.QueueDeclare(s.queue(), true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	return err
}

func (s *rabbitSession) Producer(i int) (func([]byte) error, error) {
	ch, err := s.channel(i)
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	q := s.queue()
	return func(b []byte) error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		d, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", q, false, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: b})
		if err != nil {
			return err
		}
		if ok, err := d.WaitContext(ctx); err != nil || !ok {
			return fmt.Errorf("not confirmed: %v", err)
		}
		return nil
	}, nil
}

func (s *rabbitSession) Consume(ctx context.Context, n int, done func([]byte)) error {
	conn, err := amqp.Dial(s.url)
	if err != nil {
		return err
	}
	defer conn.Close()
	var wg sync.WaitGroup
	for range n {
		ch, err := conn.Channel()
		if err != nil {
			return err
		}
		_ = ch.Qos(4, 0, false)
		msgs, err := ch.Consume(s.queue(), "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				select {
				case <-ctx.Done():
					return
				case m, ok := <-msgs:
					if !ok {
						return
					}
					if m.Ack(false) == nil { // AMQP has no answer to an ack
						done(m.Body)
					}
				}
			}
		}()
	}
	wg.Wait()
	return nil
}
