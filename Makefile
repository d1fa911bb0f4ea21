# What a developer types. CMake builds everything (CMakePresets.json); docs/development.md says more.
#
#   make demo          set up, build, fetch the model, route prompts, replay the incident's burst against the server
#   make demo-gateway  calls to models: a real small LLM behind the gateway, killed while requests flow
#   make test          set up, build, and run every test
#   make bench-NAME    measure: encoder, route, accuracy, long-text, start, incident, http, gateway, jobs, soak
#   make build         build/release/waybill
SHELL := /bin/bash
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
WAYBILL := build/release/waybill
MODEL := models/all-MiniLM-L6-v2

.PHONY: help setup build debug demo demo-gateway test test-% bench-% lint format package install deb fuzz clean

help:
	@sed -n 's/^#   //p' Makefile
	@echo "make lint | format | fuzz | install [PREFIX=] | deb | clean"

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

test: setup
	@$(MAKE) --no-print-directory $(MODEL)/model.safetensors
	@tools/test --jobs $(JOBS)

# One stage of `make test`: test-release, test-sanitize, test-threads, test-services, test-fuzz, test-gcc.
test-%: setup $(MODEL)/model.safetensors
	@tools/test --jobs $(JOBS) --stage $*

bench-%: setup
	@$(MAKE) --no-print-directory build $(MODEL)/model.safetensors
	@bench/$*/run

fuzz:
	@tools/fuzz --seconds $(or $(SECONDS_EACH),60) --jobs $(JOBS)

lint: build/debug/build.ninja
	@tools/lint

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
