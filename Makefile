# What a developer types. CMake builds everything (CMakePresets.json); docs/development.md says more.
#
#   make demo          set up, build, fetch the model, route prompts, replay the incident's burst against the server
#   make demo-gateway  calls to models: a real small LLM behind the gateway, killed while requests flow
#   make test          set up, build, and run every test
#   make demo-jobs     a thousand jobs, the server killed twice while they run, each done exactly once
#   make crash         kill the server ROUNDS times (1000) at random instants and check every promise
#   make bench-NAME    measure: encoder, route, accuracy, long-text, start, incident, http, gateway, jobs, soak
#   make build         build/release/waybill
SHELL := /bin/bash
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
WAYBILL := build/release/waybill
MODEL := models/all-MiniLM-L6-v2

.PHONY: help setup build debug demo demo-gateway demo-jobs test test-% crash bench-% lint format package install deb fuzz clean

help:
	@sed -n 's/^#   //p' Makefile
	@echo "make lint [ALL=1] | format | fuzz | install [PREFIX=] | deb | clean"

setup:
	@tools/setup

build/%/build.ninja: CMakeLists.txt CMakePresets.json $(wildcard cmake/*.cmake)
	cmake --preset $* > build-$*.log 2>&1 || { cat build-$*.log; rm -f build-$*.log; exit 1; }
	@rm -f build-$*.log

build: build/release/build.ninja
	@ninja -C build/release -j $(JOBS) waybill

debug: build/debug/build.ninja
	@ninja -C build/debug -j $(JOBS)

$(MODEL)/model.safetensors:
	@tools/fetch-model $(MODEL)

demo: setup
	@$(MAKE) --no-print-directory build $(MODEL)/model.safetensors
	@ninja -C build/release -j $(JOBS) burst
	@tools/demo

demo-gateway: setup
	@$(MAKE) --no-print-directory build $(MODEL)/model.safetensors
	@ninja -C build/release -j $(JOBS) mock_provider
	@tools/demo-gateway

demo-jobs: setup
	@$(MAKE) --no-print-directory build $(MODEL)/model.safetensors
	@ninja -C build/release -j $(JOBS) mock_provider
	@tools/demo-jobs

test: setup
	@$(MAKE) --no-print-directory $(MODEL)/model.safetensors
	@tools/test --jobs $(JOBS)

# One stage of `make test`: test-release, test-sanitize, test-threads, test-services, test-fuzz, test-gcc.
test-%: setup $(MODEL)/model.safetensors
	@tools/test --jobs $(JOBS) --stage $*

# ROUNDS kills, every other one with the power; SEED=N makes the same plan of kills again.
crash: setup
	@$(MAKE) --no-print-directory build $(MODEL)/model.safetensors
	@python3 tests/crash/crash_check.py waybill --program $(WAYBILL) --rounds $(or $(ROUNDS),1000) --power-cut 0.5 --up 0.8 --think 0.1 \
	  --drain 300 --limit 7200 --verbose $(if $(SEED),--seed $(SEED))

bench-%: setup
	@$(MAKE) --no-print-directory build $(MODEL)/model.safetensors
	@bench/$*/run

fuzz:
	@tools/fuzz --seconds $(or $(SECONDS_EACH),60) --jobs $(JOBS)

lint: build/debug/build.ninja
	@tools/lint --jobs $(JOBS) $(if $(ALL),--all)

format:
	@git ls-files '*.cc' '*.h' | xargs clang-format-19 -i

package: build
	@ninja -C build/release -j $(JOBS) waybill_archive waybill_documents

install: package
	cmake --install build/release --prefix $(PREFIX)

deb: package
	@ninja -C build/release -j $(JOBS)
	cd build/release && cpack -G DEB

clean:
	rm -rf build
