# What a developer types. Everything is built by CMake (CMakePresets.json); see docs/development.md.
.PHONY: help
help:
	@echo try later
