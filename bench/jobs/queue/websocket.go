package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// listener makes a WebSocket (RFC 6455) of the connection and waits for a job by a subscription.
func listener(c *httpConn) waiter {
	upgrade := fmt.Sprintf("GET /v1/jobs/ws HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", c.host)
	_, failed := c.c.Write([]byte(upgrade))
	if failed == nil {
		var status int
		if status, _, failed = c.answer(); failed == nil && status != 101 {
			failed = fmt.Errorf("%d instead of a WebSocket: %.200s", status, c.body)
		}
	}
	return func(id string) (bool, error) {
		if failed != nil {
			return false, failed
		}
		if err := c.sendFrame(opText, fmt.Appendf(nil, `{"type":"subscribe","jobs":["%s"]}`, id)); err != nil {
			return false, err
		}
		for {
			op, data, err := c.frame()
			switch {
			case err != nil:
				return false, err
			case op == opPing:
				if err := c.sendFrame(opPong, data); err != nil {
					return false, err
				}
			case op == opClose:
				return false, fmt.Errorf("closed: %q", data)
			case bytes.Contains(data, []byte(id)) && bytes.Contains(data, completedMark):
				return true, nil
			case bytes.Contains(data, []byte(`"type":"error"`)):
				return false, fmt.Errorf("%.200s", data)
			}
		}
	}
}

const opText, opClose, opPing, opPong = 1, 8, 9, 10

// sendFrame sends up to 64 KiB, masked as a client must, with a key that leaves it as it is.
func (h *httpConn) sendFrame(op byte, data []byte) error {
	h.out = append(h.out[:0], 0x80|op)
	if len(data) < 126 {
		h.out = append(h.out, 0x80|byte(len(data)))
	} else {
		h.out = binary.BigEndian.AppendUint16(append(h.out, 0x80|126), uint16(len(data)))
	}
	h.out = append(append(h.out, 0, 0, 0, 0), data...)
	_, err := h.c.Write(h.out)
	return err
}

func (h *httpConn) frame() (op byte, data []byte, err error) {
	var head [8]byte
	if _, err = io.ReadFull(h.r, head[:2]); err != nil {
		return
	}
	op = head[0] & 15
	n := uint64(head[1] & 127)
	switch n {
	case 126:
		_, err = io.ReadFull(h.r, head[:2])
		n = uint64(binary.BigEndian.Uint16(head[:2]))
	case 127:
		_, err = io.ReadFull(h.r, head[:8])
		n = binary.BigEndian.Uint64(head[:8])
	}
	if err == nil {
		h.body = h.body[:0]
		err = h.more(int(n))
	}
	return op, h.body, err
}
