package main

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// syncRate appends 4 KiB and waits for the disk, again and again: what a store that flushes each job by itself could
// reach at most.
func syncRate(folder string, secs float64) float64 {
	name := filepath.Join(folder, "syncs")
	f, err := os.Create(name)
	if err != nil {
		fatal("%v", err)
	}
	defer os.Remove(name)
	defer f.Close()
	block := make([]byte, 4096)
	n, start := 0, time.Now()
	for time.Since(start) < seconds(secs) {
		if _, err := f.Write(block); err != nil {
			fatal("%v", err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			fatal("fdatasync: %v", err)
		}
		n++
	}
	return float64(n) / time.Since(start).Seconds()
}
